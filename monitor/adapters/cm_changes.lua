#!lua name=cm_changes

-- KEYS: 1 events by id (hash), 2 their order by time (sorted set). ARGV: events kept, then id, time, event, ...
local function record(keys, argv)
  for i = 2, #argv, 3 do
    redis.call('HSET', keys[1], argv[i], argv[i + 2])
    redis.call('ZADD', keys[2], argv[i + 1], argv[i])
  end
  while redis.call('ZCARD', keys[2]) > tonumber(argv[1]) do
    redis.call('HDEL', keys[1], redis.call('ZPOPMIN', keys[2])[1])
  end
  return redis.status_reply('OK')
end

-- KEYS: 1 first times, 2 last times (sorted sets: aspect and value -> seconds) of one assistant.
-- ARGV: values kept, seconds after which an assistant without traffic is forgotten, then value, first, last, ...
local function sight(keys, argv)
  for i = 3, #argv, 3 do
    redis.call('ZADD', keys[1], 'LT', argv[i + 1], argv[i])
    redis.call('ZADD', keys[2], 'GT', argv[i + 2], argv[i])
  end
  -- What was not seen for longest goes first: a value that still serves must never become new again.
  while redis.call('ZCARD', keys[2]) > tonumber(argv[1]) do
    redis.call('ZREM', keys[1], redis.call('ZPOPMIN', keys[2])[1])
  end
  redis.call('EXPIRE', keys[1], argv[2])
  redis.call('EXPIRE', keys[2], argv[2])
  return redis.status_reply('OK')
end

redis.register_function('cm_changes_record', record)
redis.register_function('cm_changes_sight', sight)
