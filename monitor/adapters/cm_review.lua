#!lua name=cm_review

-- KEYS: 1 items by judgment, 2 their order.  ARGV: judgment, epoch seconds, item, ...
local function add(keys, argv)
  local fresh = 0
  for i = 1, #argv, 3 do
    if redis.call('HSETNX', keys[1], argv[i], argv[i + 2]) == 1 then
      redis.call('ZADD', keys[2], argv[i + 1], argv[i])
      fresh = fresh + 1
    end
  end
  return fresh
end

redis.register_function('cm_review_add', add)
