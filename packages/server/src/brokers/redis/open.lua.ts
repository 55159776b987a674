/**
 * Finds where a node continues to read. Returns the epoch, the offset to read after, '1' if that is the node's
 * position, and the end of the log.
 *
 * A log that lacks the message at the node's position, and has older ones, has lost its end. It ends here, and another
 * begins.
 */
export const OPEN = /* lua */ `
-- The node's position; the epoch is '' when it has none.
local NODE_EPOCH = ARGV[5]
local NODE_OFFSET = ARGV[6]
-- Source of the message at that position, as its envelope has it; '' when the node does not know.
local NODE_SOURCE = ARGV[7]

-- A new run of the server may have lost the last offsets of the one before. They are not given again: the offset leaps
-- by more messages than a Redis takes in the time for which it can lose them.
local LEAP = 2 ^ 24

local state = redis.call('HMGET', STATE, 'epoch', 'end', 'run')
local epoch, last, run = state[1], tonumber(state[2]), state[3]

local function beginAnother()
  epoch, last = beginEpoch(), 0
  redis.call(PUBLISH, CHANNEL, epoch .. ' 0 0\\n')
end

if not epoch then
  beginAnother()
elseif RUN ~= '' and run ~= RUN then
  if last > 0 then last = last + LEAP end
  redis.call('HSET', STATE, 'run', RUN, 'end', digits(last))
end

-- Everything after this offset is in the stream.
local start = last
local oldest = redis.call('XRANGE', STREAM, '-', '+', 'COUNT', 1)[1]
if oldest then start = tonumber(string.match(oldest[1], '^%d+')) - 1 end

if NODE_EPOCH == epoch then
  local offset = tonumber(NODE_OFFSET)
  local entry = redis.call('XRANGE', STREAM, NODE_OFFSET, NODE_OFFSET, 'COUNT', 1)[1]
  local isEndLost = offset > last or (not entry and start < offset)
  if entry and NODE_SOURCE ~= '' then
    local envelope = entry[2][2]
    isEndLost = string.sub(envelope, 3, 16) ~= NODE_SOURCE
  end
  if isEndLost then
    beginAnother()
    start = 0
  elseif entry or offset == start then
    return { epoch, NODE_OFFSET, '1', digits(last) }
  end
end
return { epoch, digits(start), '0', digits(last) }
`
