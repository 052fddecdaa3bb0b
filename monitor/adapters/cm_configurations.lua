#!lua name=cm_configurations

-- KEYS: 1 conversations counted in an hour, 2 its counts by configuration.
-- ARGV: seconds to live, fields at most, then conversation, field, field of the rest, ...
local function count(keys, argv)
  for i = 3, #argv, 3 do
    if redis.call('SADD', keys[1], argv[i]) == 1 then
      local field = argv[i + 1]
      -- A hash that changes with each call must not fill the memory; beyond the bound they count under one name.
      if redis.call('HEXISTS', keys[2], field) == 0 and redis.call('HLEN', keys[2]) >= tonumber(argv[2]) then
        field = argv[i + 2]
      end
      redis.call('HINCRBY', keys[2], field, 1)
    end
  end
  redis.call('EXPIRE', keys[1], argv[1])
  redis.call('EXPIRE', keys[2], argv[1])
  return redis.status_reply('OK')
end

redis.register_function('cm_configurations_count', count)
