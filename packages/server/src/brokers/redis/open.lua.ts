/**
 * Finds where a node continues to read. Returns the epoch, the offset to read after, '1' if that is the node's
 * position, and the reign. Returns nothing when the node is to ask again.
 *
 * The first call in a reign puts a fence into the log. The fence says whether messages may be missing before it: nothing
 * is missing if the node followed the log until the server went, and the log has what it has read. A node that cannot
 * say that asks again for a while, to let others come first.
 *
 * A log that lacks the message at the node's position, and has older ones, has lost its end. A fence says so.
 */
export const OPEN = /* lua */ `
-- The node's position; the epoch is '' when it has none.
local NODE_EPOCH = ARGV[4]
local NODE_OFFSET = ARGV[5]
-- Source of the message at that position, as its envelope has it; '' when the node does not know.
local NODE_SOURCE = ARGV[6]
-- For so long the node has not followed the log, in ms; '' when it never has.
local NODE_AWAY_MS = tonumber(ARGV[7])
-- '1' when the node has let others come first.
local IS_LAST_CALL = ARGV[8]
-- The script for other programs.
local PUBLISH_SCRIPT = ARGV[9]

-- Lost offsets are not given again: behind a fence they go on from a random place. A million messages that were given
-- out and lost are hit with a chance of one in 1.7e7. An epoch has room for a thousand fences.
local MIN_LEAP = 2 ^ 24
local RANDOM_DIGITS = 11
local MAX_OFFSET = 2 ^ 52

-- A server that is killed may have logged messages that it has sent to no node.
local MAX_UNSENT_MS = 1000

local state = redis.call('HMGET', STATE, 'epoch', 'end', 'reign', 'publish')
local epoch, last, knownReign = state[1], tonumber(state[2]), state[3]
local reign = currentReign(knownReign)

local function beginAnother()
  epoch, last = beginEpoch(reign), 0
  redis.call(PUBLISH, CHANNEL, epoch .. ' 0 0\\n')
end

local function fence(isComplete)
  local offset = last + MIN_LEAP + tonumber(string.sub(randomText(), 1, RANDOM_DIGITS), 16)
  if offset > MAX_OFFSET then return beginAnother() end
  local now, value = digits(nowMs()), digits(last) .. ' ' .. isComplete
  redis.call('XADD', STREAM, digits(offset) .. '-' .. now, 'f', value)
  redis.call('HSET', STATE, 'end', digits(offset), 'reign', reign)
  redis.call(PUBLISH, CHANNEL, epoch .. ' ' .. digits(offset) .. ' ' .. now .. ' ' .. value .. '\\n')
  last = offset
end

if not epoch then
  beginAnother()
  knownReign = reign
end

-- Everything after this offset is in the stream.
local function startOfLog()
  local oldest = redis.call('XRANGE', STREAM, '-', '+', 'COUNT', 1)[1]
  if not oldest then return last end
  if oldest[2][1] == 'f' then return tonumber(string.match(oldest[2][2], '^%d+')) end
  return tonumber(string.match(oldest[1], '^%d+')) - 1
end

local start = startOfLog()
local isContinued, isEndLost = false, false
if NODE_EPOCH == epoch then
  local offset = tonumber(NODE_OFFSET)
  local entry = redis.call('XRANGE', STREAM, NODE_OFFSET, NODE_OFFSET, 'COUNT', 1)[1]
  if entry and entry[2][1] == 'm' and NODE_SOURCE ~= '' then
    isEndLost = string.sub(entry[2][2], 3, 16) ~= NODE_SOURCE
  else
    isEndLost = offset > last or (not entry and start < offset)
  end
  isContinued = not isEndLost and (entry or offset == start)
end

-- Whether the node followed the log until nothing more was logged.
local function hasSeenEnd()
  if tonumber(NODE_OFFSET) == last then return true end
  local newest = redis.call('XREVRANGE', STREAM, '+', '-', 'COUNT', 1)[1]
  if not newest or not NODE_AWAY_MS then return false end
  return tonumber(string.match(newest[1], '%d+$')) <= nowMs() - NODE_AWAY_MS + MAX_UNSENT_MS
end

if isEndLost then
  fence('0')
elseif knownReign ~= reign then
  if isContinued and hasSeenEnd() then
    fence('1')
  elseif IS_LAST_CALL == '1' then
    fence('0')
  else
    return {}
  end
end
if state[4] ~= PUBLISH_SCRIPT or epoch ~= state[1] then redis.call('HSET', STATE, 'publish', PUBLISH_SCRIPT) end
-- Another epoch may have begun.
if isContinued and epoch == NODE_EPOCH then return { epoch, NODE_OFFSET, '1', reign } end
return { epoch, digits(startOfLog()), '0', reign }
`
