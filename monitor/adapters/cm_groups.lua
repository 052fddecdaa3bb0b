#!lua name=cm_groups

-- KEYS: 1 groups (hash: id -> version, a space, group as JSON), 2 waiting (hash: id -> notification),
--   3 when each is due (sorted set)
-- ARGV: group id, expected version, group or '' to forget it, notification id or '', notification, when it is due
local function commit(keys, argv)
  local stored = redis.call('HGET', keys[1], argv[1])
  local version = stored and tonumber(string.match(stored, '^%d+')) or 0
  local expected = tonumber(argv[2])
  if version ~= expected then return 0 end
  if argv[3] == '' then
    redis.call('HDEL', keys[1], argv[1])
  else
    redis.call('HSET', keys[1], argv[1], (expected + 1) .. ' ' .. argv[3])
  end
  if argv[4] ~= '' then
    redis.call('HSET', keys[2], argv[4], argv[5])
    redis.call('ZADD', keys[3], argv[6], argv[4])
  end
  return 1
end

-- KEYS: 1 waiting, 2 when each is due, 3 their attempts. ARGV: now, most of them. Returns notification, attempts or '', ...
local function waiting(keys, argv)
  local answer = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys[2], '-inf', argv[1], 'LIMIT', 0, argv[2])) do
    local text = redis.call('HGET', keys[1], id)
    if text then
      answer[#answer + 1] = text
      answer[#answer + 1] = redis.call('HGET', keys[3], id) or ''
    end
  end
  return answer
end

-- The attempts stand apart from the notification: whoever tried it must not bring back words that were erased meanwhile.
-- KEYS: 1 waiting, 2 when each is due, 3 their attempts (hash: id -> JSON). ARGV: id, attempts, when it is due
local function postpone(keys, argv)
  if redis.call('HEXISTS', keys[1], argv[1]) == 0 then return 0 end
  redis.call('HSET', keys[3], argv[1], argv[2])
  redis.call('ZADD', keys[2], argv[3], argv[1])
  return 1
end

-- KEYS: 1 waiting, 2 when each is due, 3 their attempts. ARGV: ids
local function finish(keys, argv)
  for _, id in ipairs(argv) do
    redis.call('HDEL', keys[1], id)
    redis.call('ZREM', keys[2], id)
    redis.call('HDEL', keys[3], id)
  end
  return #argv
end

-- KEYS: 1 waiting. ARGV: id, notification as it was read, the same without somebody's words
local function rewrite(keys, argv)
  if redis.call('HGET', keys[1], argv[1]) ~= argv[2] then return 0 end
  redis.call('HSET', keys[1], argv[1], argv[3])
  return 1
end

-- KEYS: 1 silences (hash), 2 their ends (sorted set). ARGV: id, silence, its end, ends before this are let go, most kept
local function silence(keys, argv)
  redis.call('HSET', keys[1], argv[1], argv[2])
  redis.call('ZADD', keys[2], argv[3], argv[1])
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys[2], '-inf', '(' .. argv[4])) do
    redis.call('HDEL', keys[1], id)
    redis.call('ZREM', keys[2], id)
  end
  while redis.call('ZCARD', keys[2]) > tonumber(argv[5]) do
    redis.call('HDEL', keys[1], redis.call('ZPOPMIN', keys[2])[1])
  end
  return 1
end

redis.register_function('cm_groups_commit', commit)
redis.register_function('cm_groups_waiting', waiting)
redis.register_function('cm_groups_postpone', postpone)
redis.register_function('cm_groups_finish', finish)
redis.register_function('cm_groups_rewrite', rewrite)
redis.register_function('cm_groups_silence', silence)
