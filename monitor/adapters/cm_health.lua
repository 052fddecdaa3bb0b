#!lua name=cm_health

-- KEYS: 1 records seen in an hour, 2 its counters.
-- ARGV: seconds to live, fields at most, record, judge, field, increment, ...
local function add(keys, argv)
  if redis.call('SADD', keys[1], argv[3]) == 0 then
    return 0
  end
  local judge = argv[4]
  for i = 5, #argv, 2 do
    local field = judge .. '\30' .. argv[i]
    -- What people deploy may have any number of names; beyond the bound they are counted under one.
    if redis.call('HEXISTS', keys[2], field) == 0 and redis.call('HLEN', keys[2]) >= tonumber(argv[2]) then
      field = judge .. '\30' .. string.match(argv[i], '^[^:]*') .. ':other'
    end
    redis.call('HINCRBY', keys[2], field, argv[i + 1])
  end
  redis.call('EXPIRE', keys[1], argv[1])
  redis.call('EXPIRE', keys[2], argv[1])
  return 1
end

redis.register_function('cm_health_add', add)
