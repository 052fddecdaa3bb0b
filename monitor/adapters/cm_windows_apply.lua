-- Part of cm_windows.lua: a batch of one shard goes in.

-- The fields of a bucket's cases, by dimension, sorted: the lowest scores first, then by entry.
local function cases_of(shard, place)
  if not place.cases then
    place.cases = {}
    local fields = redis.call('HKEYS', shard.base .. ':w:' .. place.where)
    table.sort(fields)
    for _, field in ipairs(fields) do
      local dimension = string.match(field, '^[^|]+')
      place.cases[dimension] = place.cases[dimension] or {}
      table.insert(place.cases[dimension], field)
    end
  end
  return place.cases
end

local function keep_case(shard, place, field, case)
  local cases, dimension = cases_of(shard, place), string.match(field, '^[^|]+')
  local kept, key = cases[dimension] or {}, shard.base .. ':w:' .. place.where
  cases[dimension] = kept
  kept[#kept + 1] = field
  table.sort(kept)
  local over = #kept > shard.cases_max and table.remove(kept)
  if over ~= field then redis.call('HSET', key, field, case) end
  if over and over ~= field then redis.call('HDEL', key, over) end
end

local function forget_cases(shard, place, entry)
  local hex = string.gsub(entry, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
  for _, kept in pairs(cases_of(shard, place)) do
    for n = #kept, 1, -1 do
      if string.find(kept[n], '|' .. hex .. '|', 1, true) then
        redis.call('HDEL', shard.base .. ':w:' .. place.where, table.remove(kept, n))
      end
    end
  end
end

-- Puts one record where it belongs and says in a letter what became of it.
local function enter(shard, entry, n)
  local at = (n - 1) * 5
  local records = shard.records
  local scope, minute, rank = records[at + 1], records[at + 2], records[at + 3]
  local old, old_period, old_key = remembered(shard, entry)
  if old and old[1] >= rank then return old[1] == rank and 'r' or 't' end
  if minute < shard.late then return 'l' end
  local place = place_of(shard, shard.scopes[scope][1], minute)
  local before = old and place_of(shard, old[2], old[3])
  if place.closed or before and (before.closed or before.minute < shard.late) then return 'l' end
  -- A bucket that is gone has nothing to take out.
  if before and before.open then
    change(before, old, 4, -1)
    forget_cases(shard, before, entry)
    before.touched = before.touched or true
  end
  local body = body_of(shard, place.names, records[at + 4], records[at + 5])
  place.entered[body] = (place.entered[body] or 0) + 1
  place.open, place.touched = true, scope
  for i = 1, #(shard.cases[n] or {}), 2 do keep_case(shard, place, shard.cases[n][i], shard.cases[n][i + 1]) end
  remember(shard, entry, minute, cmsgpack.pack(rank, place.scope, minute) .. body.packed, old_period, old_key)
  return old and 's' or 'n'
end

local function finish(shard, place)
  for body, count in pairs(place.entered) do change(place, body.refs, 1, count) end
  local bucket = shard.base .. ':b:' .. place.where
  write(bucket, place.changes)
  open_slice(shard, place.names, 'b', place.scope, place.minute)
  redis.call('EXPIRE', bucket, shard.ttl_bucket)
  redis.call('EXPIRE', place.names.key, shard.ttl_bucket)
  if place.cases then redis.call('EXPIRE', shard.base .. ':w:' .. place.where, shard.ttl_ledger) end
  if place.touched ~= true then redis.call('HSET', shard.base .. ':scopes', unpack(shard.scopes[place.touched])) end
end

-- KEYS: base. ARGV: the batch, packed (limits, names, shapes, marks, scopes, records, cases); entries of 8 bytes each.
-- Answers one letter a record: new, repeated, superseded, s(t)ale, late.
local function apply(keys, argv)
  local shard = cmsgpack.unpack(argv[1])
  shard.base, shard.days, shard.places = keys[1], {}, {}
  local clock = redis.call('TIME')
  -- No counter: one that began anew after the data was lost could repeat a version that a reader remembers.
  shard.version = clock[1] .. '.' .. clock[2]
  load_ledgers(shard)
  local answers, late = {}, {}
  for n = 1, #argv[2] / 8 do
    local entry = string.sub(argv[2], n * 8 - 7, n * 8)
    answers[n] = enter(shard, entry, n)
    if answers[n] == 'l' then late[#late + 1] = entry end
  end
  if #late > 0 then
    redis.call('PFADD', shard.base .. ':late:' .. shard.today, unpack(late))
    redis.call('EXPIRE', shard.base .. ':late:' .. shard.today, shard.ttl_ledger)
  end
  local touched = false
  for _, place in pairs(shard.places) do
    if place.touched then touched = true; finish(shard, place) end
  end
  if touched then
    redis.call('EXPIRE', shard.base .. ':scopes', shard.ttl_day)
    redis.call('EXPIRE', shard.base .. ':open', shard.ttl_day)
    redis.call('EXPIRE', shard.base .. ':q:b', shard.ttl_bucket)
    grow(shard)
  end
  roll_up(shard, 'b', start(shard.late, HOUR))
  roll_up(shard, 'h', start(shard.late_hours, DAY))
  roll_up(shard, 'd', start(shard.late_days, DAY))
  return table.concat(answers)
end

redis.register_function('cm_windows_enter', apply)
