#!lua name=cm_sampling

-- KEYS: 1 counts of the partition, 2 kept conversations of this hour, 3... one hash of census counts a bucket.
-- ARGV: first offset, next offset, ttl of kept, ttl of census, number of counts, number kept,
--       then name and count pairs, conversation and record pairs, then key index, field and count triples.
-- Counts and the next offset change in one step, so that a batch that is read again is not counted twice.
local function record(keys, argv)
  local counted = tonumber(redis.call('HGET', keys[1], 'next_offset') or '0')
  local counts, kept = tonumber(argv[5]), tonumber(argv[6])
  local at = 7
  local fresh = tonumber(argv[1]) >= counted and tonumber(argv[2]) > counted
  if fresh then
    for _ = 1, counts do
      redis.call('HINCRBY', keys[1], argv[at], argv[at + 1])
      at = at + 2
    end
    redis.call('HSET', keys[1], 'next_offset', argv[2])
  else
    at = at + 2 * counts
  end
  for _ = 1, kept do
    redis.call('HSET', keys[2], argv[at], argv[at + 1])
    at = at + 2
  end
  if kept > 0 then redis.call('EXPIRE', keys[2], argv[3]) end
  if fresh then
    while at <= #argv do
      local key = keys[tonumber(argv[at])]
      redis.call('HINCRBY', key, argv[at + 1], argv[at + 2])
      at = at + 3
    end
    for i = 3, #keys do redis.call('EXPIRE', keys[i], argv[4]) end
  end
  return fresh and 1 or 0
end

-- KEYS: 1 hash of first sightings. ARGV: sighting, epoch seconds, ... The earliest wins, whoever tells it when.
local function share(keys, argv)
  for i = 1, #argv, 2 do
    local known = redis.call('HGET', keys[1], argv[i])
    if not known or tonumber(argv[i + 1]) < tonumber(known) then
      redis.call('HSET', keys[1], argv[i], argv[i + 1])
    end
  end
  return redis.call('HGETALL', keys[1])
end

redis.register_function('cm_sampling_record', record)
redis.register_function('cm_sampling_share', share)
