#!lua name=cm_windows

-- One shard's windows. `base` is the shard's key; below it:
--   base:scopes            hash  scope id -> scope as JSON
--   base:i:<scope>         hash  bucket (minute) -> version, new at each change
--   base:b:<scope>:<min>   hash  cell -> count
--   base:w:<scope>:<min>   hash  dimension|score|entry -> case as JSON
-- A ledger is a hash of one conversation: entry -> rank, bucket, contribution.
local FIELD = '\30'

-- A contribution is stratum, rate, segments, marks: it counts once in each pair of a segment and a mark.
local function add(bucket, contribution, by)
  local stratum, rate, segments, marks =
    string.match(contribution, '^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)$')
  for segment in string.gmatch(segments, '[^\29]+') do
    for dimension, mark in string.gmatch(marks, '([^\29|]+)|([^\29]+)') do
      local cell = table.concat({dimension, segment, stratum, mark, rate}, '|')
      if redis.call('HINCRBY', bucket, cell, by) == 0 then redis.call('HDEL', bucket, cell) end
    end
  end
end

local function forget_cases(worst, entry)
  for _, field in ipairs(redis.call('HKEYS', worst)) do
    if string.sub(field, -#entry) == entry then redis.call('HDEL', worst, field) end
  end
end

-- Of each dimension the lowest scores stay, and among equals the entries that sort first.
local function keep_cases(worst, cases, most)
  for field, case in string.gmatch(cases, '([^\30\31]+)\31([^\30\31]+)') do
    redis.call('HSET', worst, field, case)
    local prefix = string.match(field, '^[^|]+|')
    local same = {}
    for _, other in ipairs(redis.call('HKEYS', worst)) do
      if string.sub(other, 1, #prefix) == prefix then same[#same + 1] = other end
    end
    table.sort(same)
    for i = most + 1, #same do redis.call('HDEL', worst, same[i]) end
  end
end

local function purge(base, horizon)
  for _, scope in ipairs(redis.call('HKEYS', base .. ':scopes')) do
    local index = base .. ':i:' .. scope
    for _, minute in ipairs(redis.call('HKEYS', index)) do
      if tonumber(minute) < horizon then
        redis.call('HDEL', index, minute)
        redis.call('DEL', base .. ':b:' .. scope .. ':' .. minute, base .. ':w:' .. scope .. ':' .. minute)
      end
    end
    if redis.call('EXISTS', index) == 0 then redis.call('HDEL', base .. ':scopes', scope) end
  end
end

-- KEYS: base, one ledger for each record.
-- ARGV: oldest minute kept, seconds of life, cases kept a dimension;
--   then for each record: entry, rank, scope id, scope, minute, contribution, cases
local function apply(keys, argv)
  local base, horizon, ttl, most = keys[1], tonumber(argv[1]), argv[2], tonumber(argv[3])
  local clock = redis.call('TIME')
  -- No counter: one that began anew after the data was lost could repeat a version that a reader remembers.
  local version = clock[1] .. '.' .. clock[2]
  local answers, touched, opened = {}, {}, false

  local function touch(scope, minute)
    touched[scope .. ':' .. minute] = true
    if redis.call('HSET', base .. ':i:' .. scope, minute, version) == 1 then opened = true end
  end

  for n = 2, #keys do
    local at = 3 + (n - 2) * 7
    local entry, rank, scope = argv[at + 1], tonumber(argv[at + 2]), argv[at + 3]
    local minute, contribution, cases = argv[at + 5], argv[at + 6], argv[at + 7]
    local old = redis.call('HGET', keys[n], entry)
    local answer = 'new'
    if old then
      local old_rank, old_scope, old_minute, old_contribution =
        string.match(old, '^(%d+)\30([^\30]+)\30([^\30]+)\30(.*)$')
      old_rank = tonumber(old_rank)
      if old_rank == rank then answer = 'repeated'
      elseif old_rank > rank then answer = 'stale'
      else
        answer = 'superseded'
        -- A bucket that is gone has nothing to take out.
        if redis.call('HEXISTS', base .. ':i:' .. old_scope, old_minute) == 1 then
          local where = old_scope .. ':' .. old_minute
          add(base .. ':b:' .. where, old_contribution, -1)
          forget_cases(base .. ':w:' .. where, entry)
          touch(old_scope, old_minute)
        end
      end
    end
    if answer == 'new' or answer == 'superseded' then
      redis.call('HSET', base .. ':scopes', scope, argv[at + 4])
      add(base .. ':b:' .. scope .. ':' .. minute, contribution, 1)
      keep_cases(base .. ':w:' .. scope .. ':' .. minute, cases, most)
      touch(scope, minute)
      redis.call('HSET', keys[n], entry, table.concat({rank, scope, minute, contribution}, FIELD))
      redis.call('EXPIRE', keys[n], ttl)
    end
    answers[#answers + 1] = answer
  end

  for where in pairs(touched) do
    redis.call('EXPIRE', base .. ':b:' .. where, ttl)
    redis.call('EXPIRE', base .. ':w:' .. where, ttl)
    redis.call('EXPIRE', base .. ':i:' .. string.match(where, '^[^:]+'), ttl)
  end
  if next(touched) then redis.call('EXPIRE', base .. ':scopes', ttl) end
  if opened then purge(base, horizon) end
  return answers
end

redis.register_function('cm_windows_apply', apply)
