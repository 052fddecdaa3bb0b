#!lua name=cm_conversations

-- KEYS of a conversation: 1 record hash, 2 texts hash, 3 due set of its partition, 4 funnel hash.
-- Fields of the record: rev, closed, first, last, reason, ended, over (it must be closed before it grows),
--   e:<event> = source \x1f outcome \x1f revision \x1f kind,  d:<source> = event sent twice,
--   x:<source> = '' for no event at all, 'retried' once it became one,  j:<judgment> = outcome \x1f target kind \x1f record.
local SEP = '\31'

local function split(text)
  local parts = {}
  for part in string.gmatch(text .. SEP, '(.-)' .. SEP) do parts[#parts + 1] = part end
  return parts
end

local function set_outcome(record, funnel, event, parts, outcome)
  redis.call('HINCRBY', funnel, parts[4] .. '|' .. parts[2], -1)
  redis.call('HINCRBY', funnel, parts[4] .. '|' .. outcome, 1)
  redis.call('HSET', record, 'e:' .. event, table.concat({parts[1], outcome, parts[3], parts[4]}, SEP))
end

-- ARGV: event, source, outcome, kind, taken, conversation, its time, idle seconds, seconds after its end, max age,
--   texts ttl, record ttl, '1' if its time may be far ahead of the close, most texts
local function take(keys, argv)
  local record, texts, due, funnel = keys[1], keys[2], keys[3], keys[4]
  local event, source, outcome, kind = argv[1], argv[2], argv[3], argv[4]
  -- A dead letter that was sent again, and is an event now: it has its one outcome, and that is another.
  if redis.call('HGET', record, 'x:' .. source) == '' then
    redis.call('HSET', record, 'x:' .. source, 'retried')
    redis.call('HINCRBY', funnel, 'event|invalid', -1)
  end
  local known = redis.call('HGET', record, 'e:' .. event)
  if known then
    local parts = split(known)
    if parts[1] == source then return {'again', tonumber(parts[3])} end
    if redis.call('HSETNX', record, 'd:' .. source, event) == 1 then
      redis.call('HINCRBY', funnel, kind .. '|duplicate', 1)
    end
    return {'duplicate', tonumber(parts[3])}
  end
  local rev = tonumber(redis.call('HGET', record, 'rev') or '0')
  local closed = tonumber(redis.call('HGET', record, 'closed') or '0')
  local brings_turns = kind == 'turn' or kind == 'conversation'
  if argv[13] == '1' and closed < rev then
    -- In a replay the events are ahead of the markers: what was over before this event is closed before it.
    local over = redis.call('ZSCORE', due, argv[6])
    -- What comes behind it in the same batch waits with it, or the cut of the batches would decide on the revision.
    if over and (tonumber(over) < tonumber(argv[7]) or redis.call('HEXISTS', record, 'over') == 1) then
      redis.call('HSET', record, 'over', '1')
      return {'overdue', rev, over}
    end
  end
  if brings_turns and redis.call('HLEN', texts) >= tonumber(argv[14]) then outcome = 'over_limit' end
  if rev == 0 or (closed == rev and brings_turns) then
    rev = rev + 1
    redis.call('HSET', record, 'rev', rev, 'first', argv[7], 'last', argv[7])
    redis.call('HDEL', record, 'ended', 'reason')
  end
  redis.call('HSET', record, 'e:' .. event, table.concat({source, outcome, rev, kind}, SEP))
  redis.call('HINCRBY', funnel, kind .. '|' .. outcome, 1)
  if outcome ~= 'over_limit' then redis.call('HSET', texts, event, argv[5]) end
  if closed < rev then
    if kind == 'end' or kind == 'conversation' then redis.call('HSET', record, 'ended', kind) end
    -- On the stream's clock a late event carries an old time: it is no sign that the conversation fell silent.
    local first, last = redis.call('HGET', record, 'first'), redis.call('HGET', record, 'last')
    if tonumber(argv[7]) < tonumber(first) then
      first = argv[7]
      redis.call('HSET', record, 'first', first)
    end
    if tonumber(argv[7]) > tonumber(last) then
      last = argv[7]
      redis.call('HSET', record, 'last', last)
    end
    local at = math.min(tonumber(last) + tonumber(argv[8]), tonumber(first) + tonumber(argv[10]))
    if redis.call('HEXISTS', record, 'ended') == 1 then at = math.min(at, tonumber(last) + tonumber(argv[9])) end
    redis.call('ZADD', due, string.format('%.3f', at), argv[6])
  end
  redis.call('EXPIRE', texts, argv[11])
  redis.call('EXPIRE', record, argv[12])
  return {'new', rev}
end

-- ARGV: events that a judgment was asked for
local function queued(keys, argv)
  for _, event in ipairs(argv) do
    local known = redis.call('HGET', keys[1], 'e:' .. event)
    if known then
      local parts = split(known)
      if parts[2] == 'waiting' then set_outcome(keys[1], keys[4], event, parts, 'queued') end
    end
  end
  return 1
end

-- ARGV: conversation, revision, number of texts seen, reason
local function close(keys, argv)
  local record, texts, due, funnel = keys[1], keys[2], keys[3], keys[4]
  if redis.call('HGET', record, 'rev') ~= argv[2] then return 0 end
  if redis.call('HLEN', texts) ~= tonumber(argv[3]) then return 0 end
  if redis.call('HGET', record, 'closed') ~= argv[2] then
    redis.call('HSET', record, 'closed', argv[2], 'reason', argv[4])
    redis.call('HINCRBY', funnel, 'closed|' .. argv[4], 1)
  end
  redis.call('ZREM', due, argv[1])
  redis.call('HDEL', record, 'over')
  return 1
end

-- ARGV: source, record ttl
local function reject(keys, argv)
  if redis.call('HSETNX', keys[1], 'x:' .. argv[1], '') == 1 then
    redis.call('HINCRBY', keys[4], 'event|invalid', 1)
  end
  redis.call('EXPIRE', keys[1], argv[2])
  return 1
end

-- ARGV: judgment, outcome, target kind, record, record ttl, events...
local function settle(keys, argv)
  local record, funnel = keys[1], keys[4]
  local field, outcome, kind = 'j:' .. argv[1], argv[2], argv[3]
  local known = redis.call('HGET', record, field)
  local before = known and split(known)[1]
  if before ~= outcome and before ~= 'judged' then
    if before then redis.call('HINCRBY', funnel, 'judgment:' .. kind .. '|' .. before, -1) end
    redis.call('HINCRBY', funnel, 'judgment:' .. kind .. '|' .. outcome, 1)
    redis.call('HSET', record, field, table.concat({outcome, kind, argv[4]}, SEP))
  end
  redis.call('EXPIRE', record, argv[5])
  for i = 6, #argv do
    local event = redis.call('HGET', record, 'e:' .. argv[i])
    if event then
      local parts = split(event)
      local open = parts[2] == 'waiting' or parts[2] == 'queued'
      local failed = parts[2] == 'failed' or parts[2] == 'expired' or parts[2] == 'thinned'
      local better = outcome == 'judged' and failed
      if open or better then set_outcome(record, funnel, argv[i], parts, outcome) end
    end
  end
  return 1
end

redis.register_function('cm_conversation_take', take)
redis.register_function('cm_conversation_queued', queued)
redis.register_function('cm_conversation_close', close)
redis.register_function('cm_conversation_reject', reject)
redis.register_function('cm_conversation_settle', settle)
