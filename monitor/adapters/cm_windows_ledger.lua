-- Part of cm_windows.lua: which contribution stands where, found again by its entry.

-- The ledger of a period is spread over n chunks by linear hashing, so that each stays small whatever the traffic.
local function chunks_of(count) return 1 + math.floor(count / CHUNK) end

local function power_above(n)
  local power = 1
  while power < n do power = power * 2 end
  return power
end

local function seed_of(entry)
  local a, b, c, d = string.byte(entry, 5, 8)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

local function chunk_key(shard, period, ledger, entry)
  local seed = seed_of(entry)
  local chunk = seed % ledger.power
  if chunk >= ledger.chunks then chunk = seed % (ledger.power / 2) end
  return shard.base .. ':l:' .. period .. ':' .. chunk
end

local function ledger_of(count)
  local chunks = chunks_of(count)
  return {count = count, chunks = chunks, power = power_above(chunks), new = 0}
end

local function split(shard, period, chunk)
  local power = power_above(chunk + 1)
  local old = shard.base .. ':l:' .. period .. ':' .. (chunk - power / 2)
  local fields, moved, gone = redis.call('HGETALL', old), {}, {}
  for n = 1, #fields, 2 do
    if seed_of(fields[n]) % power == chunk then
      moved[#moved + 1] = fields[n]; moved[#moved + 1] = fields[n + 1]
      gone[#gone + 1] = fields[n]
    end
  end
  if #gone == 0 then return end
  local new = shard.base .. ':l:' .. period .. ':' .. chunk
  in_slices('HSET', new, moved)
  in_slices('HDEL', old, gone)
  redis.call('EXPIRE', new, shard.ttl_ledger)
end

local function grow(shard)
  for period, ledger in pairs(shard.ledgers) do
    if ledger.new > 0 then
      local count = redis.call('HINCRBY', shard.base .. ':l', period, ledger.new)
      for chunk = ledger.chunks, chunks_of(count) - 1 do split(shard, period, chunk) end
    end
  end
  redis.call('EXPIRE', shard.base .. ':l', shard.ttl_ledger)
end

local function load_ledgers(shard)
  shard.ledgers = {}
  local counts = redis.call('HGETALL', shard.base .. ':l')
  for n = 1, #counts, 2 do
    local period, ledger = tonumber(counts[n]), ledger_of(tonumber(counts[n + 1]))
    if (period + 1) * shard.period <= shard.late then
      for chunk = 0, ledger.chunks - 1 do redis.call('UNLINK', shard.base .. ':l:' .. period .. ':' .. chunk) end
      redis.call('HDEL', shard.base .. ':l', counts[n])
    else
      shard.ledgers[period] = ledger
    end
  end
end

local function remembered(shard, entry)
  for period, ledger in pairs(shard.ledgers) do
    local key = chunk_key(shard, period, ledger, entry)
    local packed = redis.call('HGET', key, entry)
    if packed then return {cmsgpack.unpack(packed)}, period, key end
  end
end

local function remember(shard, entry, minute, packed, old_period, old_key)
  local period = math.floor(minute / shard.period)
  local ledger = shard.ledgers[period]
  if not ledger then ledger = ledger_of(0); shard.ledgers[period] = ledger end
  local key = chunk_key(shard, period, ledger, entry)
  if old_period ~= period then
    if old_period then redis.call('HDEL', old_key, entry) end
    ledger.new = ledger.new + 1
  end
  redis.call('HSET', key, entry, packed)
  redis.call('EXPIRE', key, shard.ttl_ledger)
end
