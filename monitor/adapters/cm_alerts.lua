#!lua name=cm_alerts

-- KEYS: 1 open alerts, 2 resolved alerts (hashes: fingerprint -> version, a space, alert as JSON),
--   3 resolved by time (sorted set), 4 outbox (hash: id -> notification), 5 its order (sorted set), 6 its sequence
-- ARGV: fingerprint, expected version, alert, state, time, resolved alerts kept, notification id or '', notification
local function commit(keys, argv)
  local open, closed, by_time = keys[1], keys[2], keys[3]
  local fingerprint, expected = argv[1], tonumber(argv[2])
  local stored = redis.call('HGET', open, fingerprint) or redis.call('HGET', closed, fingerprint)
  local version = stored and tonumber(string.match(stored, '^%d+')) or 0
  if version ~= expected then return 0 end
  local value = (expected + 1) .. ' ' .. argv[3]
  if argv[4] == 'resolved' then
    redis.call('HDEL', open, fingerprint)
    redis.call('HSET', closed, fingerprint, value)
    redis.call('ZADD', by_time, argv[5], fingerprint)
    while redis.call('ZCARD', by_time) > tonumber(argv[6]) do
      redis.call('HDEL', closed, redis.call('ZPOPMIN', by_time)[1])
    end
  else
    redis.call('HDEL', closed, fingerprint)
    redis.call('ZREM', by_time, fingerprint)
    redis.call('HSET', open, fingerprint, value)
  end
  if argv[7] ~= '' then
    redis.call('HSET', keys[4], argv[7], argv[8])
    redis.call('ZADD', keys[5], redis.call('INCR', keys[6]), argv[7])
  end
  return 1
end

-- KEYS: 1 outbox, 2 its order. ARGV: ids
local function finish(keys, argv)
  for _, id in ipairs(argv) do
    redis.call('HDEL', keys[1], id)
    redis.call('ZREM', keys[2], id)
  end
  return #argv
end

-- KEYS: 1 outbox. ARGV: id, notification as it was read, the same without somebody's words
local function rewrite(keys, argv)
  if redis.call('HGET', keys[1], argv[1]) ~= argv[2] then return 0 end
  redis.call('HSET', keys[1], argv[1], argv[3])
  return 1
end

-- KEYS: 1 outbox, 2 its order. ARGV: most entries. Returns notifications
local function outbox(keys, argv)
  local answer = {}
  for _, id in ipairs(redis.call('ZRANGE', keys[2], 0, tonumber(argv[1]) - 1)) do
    answer[#answer + 1] = redis.call('HGET', keys[1], id)
  end
  return answer
end

-- KEYS: 1 the boundary. ARGV: new boundary, expected one or ''
local function claim(keys, argv)
  if (redis.call('GET', keys[1]) or '') ~= argv[2] then return 0 end
  redis.call('SET', keys[1], argv[1])
  return 1
end

redis.register_function('cm_alerts_commit', commit)
redis.register_function('cm_alerts_finish', finish)
redis.register_function('cm_alerts_outbox', outbox)
redis.register_function('cm_alerts_rewrite', rewrite)
redis.register_function('cm_alerts_claim', claim)
