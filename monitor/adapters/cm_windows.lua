#!lua name=cm_windows

-- One shard's windows. `base` is the shard's key. Times are minutes since 1970; a slice is named by its first one.
-- Levels are b (bucket), h (hour) and d (day). Each count stands in one of them and moves on when its slice leaves.
--   base:scopes             hash  scope -> its JSON, while anything of it is kept
--   base:open               hash  level and scope -> its slices
--   base:q:<level>          zset  scope:time, by time
--   base:n:<scope>:<day>    hash  the day's names -> codes, level and time -> version, # -> counters
--   base:b|h|d:<scope>:<t>  hash  segment.stratum.rate -> packed (mark, count) pairs, all of them codes of the day
--   base:o:<scope>:<day>    set   key:hash of the names that became *other
--   base:w:<scope>:<t>      hash  dimension|score|entry|conversation -> case as JSON
--   base:late:<day>         hyperloglog of the entries that came too late on a day of the deployment's clock
--   base:l                  hash  period -> contributions that entered its ledger
--   base:l:<period>:<chunk> hash  entry -> packed rank, scope, bucket, stratum, rate, n, n segments, marks
local HOUR, DAY = 60, 1440
local SIZE = {h = HOUR, d = DAY}
local NEXT = {b = 'h', h = 'd'}
-- Fields a chunk of the ledger has on average; twice as many with luck's spread are still below 120.
local CHUNK = 40
-- Slices of a level that one call rolls up, about a millisecond each; the next call does the rest.
local ROLLED_MAX = 8
-- Names told apart among those that became *other; more are a flood.
local OTHERS_MAX = 512
-- Lua takes no more than some thousand values in one call.
local SLICE = 1000

local function start(minute, size) return minute - minute % size end

local function in_slices(command, key, values)
  for from = 1, #values, SLICE do
    redis.call(command, key, unpack(values, from, math.min(from + SLICE - 1, #values)))
  end
end

-- Changes: field -> mark -> by. A count that reaches zero goes.
local function write(key, changes)
  local fields, set, gone = {}, {}, {}
  for field in pairs(changes) do fields[#fields + 1] = field end
  for from = 1, #fields, SLICE do
    local last = math.min(from + SLICE - 1, #fields)
    local packed = redis.call('HMGET', key, unpack(fields, from, last))
    for n = from, last do
      local by, counts, left = changes[fields[n]], {}, {}
      if packed[n - from + 1] then counts = cmsgpack.unpack(packed[n - from + 1]) end
      for i = 1, #counts, 2 do
        local count = counts[i + 1] + (by[counts[i]] or 0)
        by[counts[i]] = nil
        if count > 0 then left[#left + 1] = counts[i]; left[#left + 1] = count end
      end
      for mark, count in pairs(by) do
        if count > 0 then left[#left + 1] = mark; left[#left + 1] = count end
      end
      if #left > 0 then set[#set + 1] = fields[n]; set[#set + 1] = cmsgpack.pack(left)
      else gone[#gone + 1] = fields[n] end
    end
  end
  in_slices('HSET', key, set)
  in_slices('HDEL', key, gone)
end

-- The names of one scope's day, with the codes of those that the batch mentions.
local function names_of(shard, scope, minute)
  local key = shard.base .. ':n:' .. scope .. ':' .. start(minute, DAY)
  local names = shard.days[key]
  if not names then
    names = {key = key, others = shard.base .. ':o:' .. scope .. ':' .. start(minute, DAY), codes = {}, bodies = {}}
    if #shard.names > 0 then names.codes = redis.call('HMGET', key, unpack(shard.names)) end
    shard.days[key] = names
  end
  return names
end

-- The first values of a key get codes of their own, the others share one.
local function new_code(shard, names, name)
  local kind = string.sub(name, 1, 1)
  local key, most, other
  if kind == 't' then key, most, other = 'strata', shard.strata_max, 't' .. shard.other_stratum
  elseif kind == 'g' then
    key, most = string.match(name, '^g([^=]+)='), shard.segment_values_max
    other = key and 'g' .. key .. '=*other'
  end
  if key then
    if tonumber(redis.call('HGET', names.key, '#' .. key) or 0) >= most then
      if redis.call('SCARD', names.others) < OTHERS_MAX then
        redis.call('SADD', names.others, key .. ':' .. string.sub(redis.sha1hex(name), 1, 8))
        redis.call('EXPIRE', names.others, shard.ttl_bucket)
      end
      local code = redis.call('HGET', names.key, other)
      if code then return tonumber(code) end
      name = other
    else
      redis.call('HINCRBY', names.key, '#' .. key, 1)
    end
  end
  local code = redis.call('HINCRBY', names.key, '#' .. kind, 1)
  redis.call('HSET', names.key, name, code)
  return code
end

local function code_of(shard, names, n)
  local code = names.codes[n]
  if not code then code = new_code(shard, names, shard.names[n]) end
  names.codes[n] = tonumber(code)
  return names.codes[n]
end

-- What a shape (stratum, rate, segments) and a set of marks are in the codes of a day.
local function body_of(shard, names, shape, marks)
  local id = shape * 65536 + marks
  local body = names.bodies[id]
  if not body then
    local parts = shard.shapes[shape]
    local refs = {code_of(shard, names, parts[1]), code_of(shard, names, parts[2]), #parts - 2}
    for n = 3, #parts do refs[#refs + 1] = code_of(shard, names, parts[n]) end
    for _, mark in ipairs(shard.marks[marks]) do refs[#refs + 1] = code_of(shard, names, mark) end
    body = {refs = refs, packed = cmsgpack.pack(unpack(refs))}
    names.bodies[id] = body
  end
  return body
end

-- One bucket, with what the batch does to it.
local function place_of(shard, scope, minute)
  local where = scope .. ':' .. minute
  local place = shard.places[where]
  if not place then
    local names = names_of(shard, scope, minute)
    local seen = redis.call('HMGET', names.key, 'b' .. minute, 'h' .. start(minute, HOUR), 'd' .. start(minute, DAY))
    place = {where = where, scope = scope, minute = minute, names = names, open = seen[1], changes = {}, entered = {}}
    -- Its hour or day has taken up what there was; what comes now would be in there twice, or never.
    place.closed = not seen[1] and (seen[2] or seen[3])
    shard.places[where] = place
  end
  return place
end

local function change(place, refs, at, by)
  local tail = '.' .. refs[at] .. '.' .. refs[at + 1]
  local last = at + 2 + refs[at + 2]
  for s = at + 3, last do
    local field = refs[s] .. tail
    local marks = place.changes[field]
    if not marks then marks = {}; place.changes[field] = marks end
    for n = last + 1, #refs do marks[refs[n]] = (marks[refs[n]] or 0) + by end
  end
end

local function open_slice(shard, names, level, scope, minute)
  if redis.call('HSET', names.key, level .. minute, shard.version) == 1 then
    redis.call('ZADD', shard.base .. ':q:' .. level, minute, scope .. ':' .. minute)
    redis.call('HINCRBY', shard.base .. ':open', level .. scope, 1)
  end
end

local function close_slice(shard, names, level, scope, minute)
  redis.call('HDEL', names.key, level .. minute)
  redis.call('ZREM', shard.base .. ':q:' .. level, scope .. ':' .. minute)
  local open = shard.base .. ':open'
  if redis.call('HINCRBY', open, level .. scope, -1) <= 0 then
    redis.call('HDEL', open, level .. scope)
    local left = redis.call('HMGET', open, 'b' .. scope, 'h' .. scope, 'd' .. scope)
    if not (left[1] or left[2] or left[3]) then redis.call('HDEL', shard.base .. ':scopes', scope) end
  end
end

local function gather(changes, counted)
  for n = 1, #counted, 2 do
    local counts, marks = cmsgpack.unpack(counted[n + 1]), changes[counted[n]] or {}
    for i = 1, #counts, 2 do marks[counts[i]] = (marks[counts[i]] or 0) + counts[i + 1] end
    changes[counted[n]] = marks
  end
end

-- Hours take up buckets that leave, days take up hours; days go at last. Times before `limit` leave.
local function roll_up(shard, level, limit)
  local wholes = {}
  local slices = redis.call('ZRANGEBYSCORE', shard.base .. ':q:' .. level, '-inf', '(' .. limit, 'LIMIT', 0, ROLLED_MAX)
  for _, slice in ipairs(slices) do
    local scope, minute = string.match(slice, '^(.*):(%-?%d+)$')
    minute = tonumber(minute)
    local names = names_of(shard, scope, minute)
    local key, into = shard.base .. ':' .. level .. ':' .. slice, NEXT[level]
    if into then
      local target = start(minute, SIZE[into])
      local whole = shard.base .. ':' .. into .. ':' .. scope .. ':' .. target
      wholes[whole] = wholes[whole] or {}
      gather(wholes[whole], redis.call('HGETALL', key))
      open_slice(shard, names, into, scope, target)
      redis.call('EXPIRE', names.key, shard.ttl_day)
      redis.call('EXPIRE', shard.base .. ':q:' .. into, shard.ttl_day)
    end
    redis.call('UNLINK', key, shard.base .. ':w:' .. slice)
    close_slice(shard, names, level, scope, minute)
    if not into then redis.call('UNLINK', names.key, names.others) end
  end
  for whole, changes in pairs(wholes) do
    write(whole, changes)
    redis.call('EXPIRE', whole, shard.ttl_day)
  end
end
