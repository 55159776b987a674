// Each script is one step: Redis runs nothing else meanwhile, and writes all of it to its file or nothing. All keys of an
// auction carry one hash tag, so a cluster keeps them in one slot. Redis's own TIME decides what is late.

const NOW_US = `
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local function text(number) return string.format('%.0f', number) end
`

/**
 * Appends an event of an item to its record, whose entries have the ids `seq-0`, and to the outbox. The message id has
 * the time too: should Redis lose its last writes, a new event with the same seq is no duplicate of the lost one.
 */
const APPEND = `
local function append(events, outbox, item, seq, fields, event)
  event = string.format('{"type":"%s","item":"%s","seq":%s,"ts_us":%s%s}', event, item, seq, text(nowUs), fields)
  redis.call('XADD', events, seq .. '-0', 'event', event)
  redis.call('XADD', outbox, '*', 'key', 'auction.' .. item .. '.bid', 'id', seq .. '-' .. text(nowUs), 'payload', event)
end
`

/** Opens an item, unless its id is taken or too many are open. */
export const OPEN = {
  numberOfKeys: 3,
  lua: `${NOW_US}
local item, due, outbox = unpack(KEYS)
local id, lengthUs, startPrice, maxItems = unpack(ARGV)
if redis.call('EXISTS', item) == 1 then return {'exists'} end
if redis.call('ZCARD', due) >= tonumber(maxItems) then return {'full'} end
local endsUs = text(nowUs + lengthUs)
redis.call('HSET', item, 'startPrice', startPrice, 'endsUs', endsUs, 'seq', 0, 'highest', 0, 'bidder', '', 'isClosed', 0)
redis.call('ZADD', due, endsUs, id)
local opened = string.format('{"id":"%s","startPrice":%s,"endsUs":%s}', id, startPrice, endsUs)
redis.call('XADD', outbox, '*', 'key', 'auction.items', 'id', id .. '-' .. endsUs, 'payload', opened)
return {'opened', endsUs}
`,
}

/**
 * Decides a bid. The highest wins, the first of equal ones. An accepted bid is known by its bidder and id from then on, and
 * a retry gets the first answer. A refused bid need not be known: the price only rises and the end never moves, so a retry
 * is refused again.
 */
export const BID = {
  numberOfKeys: 4,
  lua: `${NOW_US}${APPEND}
local item, answers, events, outbox = unpack(KEYS)
local id, bidder, bidId, amount, maxBids, maxWaiting = unpack(ARGV)
local name = bidder .. bidId
local known = redis.call('HGET', answers, name)
if known then return {'known', known} end
local found = redis.call('HMGET', item, 'endsUs', 'isClosed', 'seq', 'highest', 'startPrice')
if not found[1] then return {'unknown'} end
if found[2] == '1' or nowUs >= tonumber(found[1]) then return {'closed'} end
local seq, highest = tonumber(found[3]), tonumber(found[4])
local minimum = seq == 0 and tonumber(found[5]) or highest + 1
if tonumber(amount) < minimum then return {'too-low', text(highest), text(minimum)} end
if seq >= tonumber(maxBids) then return {'full'} end
if redis.call('XLEN', outbox) >= tonumber(maxWaiting) then return {'behind'} end
seq = text(seq + 1)
local answer = seq .. ' ' .. amount .. ' ' .. text(nowUs)
redis.call('HSET', item, 'seq', seq, 'highest', amount, 'bidder', bidder)
redis.call('HSET', answers, name, answer)
append(events, outbox, id, seq, ',"amount":' .. amount .. ',"bidder":' .. bidder .. ',"bidId":"' .. bidId .. '"', 'bid')
return {'accepted', answer}
`,
}

/** Closes an item whose end has come, once; any gateway may ask. Its keys stay for so long, and then expire. */
export const CLOSE = {
  numberOfKeys: 5,
  lua: `${NOW_US}${APPEND}
local item, answers, events, outbox, due = unpack(KEYS)
local id, keepMs = unpack(ARGV)
local found = redis.call('HMGET', item, 'endsUs', 'isClosed', 'seq', 'highest', 'bidder')
if found[1] and found[2] == '0' then
  if nowUs < tonumber(found[1]) then return 0 end
  local seq = text(found[3] + 1)
  local result = found[5] == '' and '' or ',"winner":' .. found[5] .. ',"amount":' .. found[4]
  redis.call('HSET', item, 'isClosed', 1, 'seq', seq)
  append(events, outbox, id, seq, result, 'closed')
  for _, key in ipairs({item, answers, events}) do redis.call('PEXPIRE', key, keepMs) end
end
redis.call('ZREM', due, id)
return 1
`,
}

/** Takes or renews the lease of the relay. */
export const HOLD = {
  numberOfKeys: 1,
  lua: `
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`,
}

/** Gives the lease of the relay back. */
export const RELEASE = {
  numberOfKeys: 1,
  lua: `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`,
}
