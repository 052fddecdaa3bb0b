#!lua name=cm_clock

-- KEYS: 1 hash of times by source.
-- ARGV: number of idle sources, the idle sources, then source, epoch seconds, source, epoch seconds, ...
local function advance(keys, argv)
  local idle = tonumber(argv[1])
  for i = idle + 2, #argv, 2 do
    local known = redis.call('HGET', keys[1], argv[i])
    if not known or tonumber(known) < tonumber(argv[i + 1]) then
      redis.call('HSET', keys[1], argv[i], argv[i + 1])
    end
  end
  -- The last time stays: without one nothing would be known of the past.
  for i = 2, idle + 1 do
    if redis.call('HLEN', keys[1]) > 1 then redis.call('HDEL', keys[1], argv[i]) end
  end
  return redis.call('HGETALL', keys[1])
end

redis.register_function('cm_clock_advance', advance)
