#!lua name=cm_budget

-- KEYS: one counter a claim.  ARGV: limit, amount, seconds to keep, of each claim.
-- Returns: 1 if all were taken, else 0; then how full the fullest was before, in parts of a million.
local function reserve(keys, argv)
  local granted, fill = 1, 0
  for i = 1, #keys do
    local used = tonumber(redis.call('GET', keys[i]) or '0')
    local limit = tonumber(argv[3 * i - 2])
    if used + tonumber(argv[3 * i - 1]) > limit then granted = 0 end
    fill = math.max(fill, used / limit)
  end
  if granted == 1 then
    for i = 1, #keys do
      redis.call('INCRBY', keys[i], argv[3 * i - 1])
      redis.call('EXPIRE', keys[i], argv[3 * i], 'NX')
    end
  end
  return {granted, math.floor(fill * 1000000)}
end

-- KEYS: one counter a claim.  ARGV: amount, seconds to keep, of each. A counter never falls below zero.
local function settle(keys, argv)
  for i = 1, #keys do
    local left = redis.call('INCRBY', keys[i], argv[2 * i - 1])
    if left < 0 then redis.call('SET', keys[i], 0, 'KEEPTTL') end
    redis.call('EXPIRE', keys[i], argv[2 * i], 'NX')
  end
  return #keys
end

redis.register_function('cm_budget_reserve', reserve)
redis.register_function('cm_budget_settle', settle)
