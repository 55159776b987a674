/**
 * Finds where a node continues to read. Returns the epoch, the offset to read after, '1' if that is the node's
 * position, the term, and the offset before the epoch. Returns nothing when the node must ask again.
 *
 * In a new term the log may have lost its end. It has not if the node followed the log until nothing more was logged, and the
 * log has what it has read. A node that cannot say that asks again for a while, to let others come first. Then another
 * epoch of the log begins; its messages stay.
 *
 * A log that lacks the message at the node's position, and has older ones, has lost its end: another epoch begins.
 */
export const OPEN = /* lua */ `
-- The node's position; the epoch is '' when it has none.
local NODE_EPOCH = ARGV[4]
local NODE_OFFSET = ARGV[5]
-- Time in the id of the entry at that position; '' when the node does not know.
local NODE_TIME = ARGV[6]
-- For so long the node does not know that it followed the log, in ms; '' when it never has.
local NODE_AWAY_MS = tonumber(ARGV[7])
-- '1' when the node has let others come first; '2' to begin another epoch unless the log is marked with the rules.
local IS_LAST_CALL = ARGV[8]
-- The script for other programs.
local PUBLISH_SCRIPT = ARGV[9]
-- A hash of the rules of the node.
local RULES = ARGV[10]

-- A server that is killed may have logged messages that it has sent to no node.
local MAX_UNSENT_MS = 1000

local state = redis.call('HMGET', STATE, 'epoch', 'end', 'reign', 'publish', 'began', 'rules')
local epoch, last, knownTerm, began = state[1], tonumber(state[2]), state[3], state[5]
local term = currentTerm(knownTerm)

local function tellEpoch()
  redis.call(PUBLISH, CHANNEL, epoch .. ' 0 0\\n')
end

-- A log of an earlier version, which may have fences, does not say where its epoch began.
if not epoch or not began then
  epoch, last, knownTerm, began = beginLog(term), 0, term, '0'
  redis.call('HSET', STATE, 'rules', RULES)
  tellEpoch()
end

local function beginAnother()
  epoch, began = beginEpoch(term, last), digits(last)
  tellEpoch()
end

-- Everything after this offset is in the stream.
local function startOfLog()
  local oldest = redis.call('XRANGE', STREAM, '-', '+', 'COUNT', 1)[1]
  if not oldest then return last end
  return tonumber(string.match(oldest[1], '^%d+')) - 1
end

local start = startOfLog()
local isContinued, isEndLost = false, false
if NODE_EPOCH == epoch then
  local offset = tonumber(NODE_OFFSET)
  local entry = redis.call('XRANGE', STREAM, NODE_OFFSET, NODE_OFFSET, 'COUNT', 1)[1]
  if entry and NODE_TIME ~= '' then
    isEndLost = string.match(entry[1], '%d+$') ~= NODE_TIME
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
  local followedMs = math.max(nowMs() - NODE_AWAY_MS, tonumber(NODE_TIME) or 0)
  return tonumber(string.match(newest[1], '%d+$')) <= followedMs + MAX_UNSENT_MS
end

if IS_LAST_CALL == '2' then
  if state[6] == RULES then return {} end
  beginAnother()
  redis.call('HSET', STATE, 'rules', RULES)
elseif isEndLost then
  beginAnother()
elseif knownTerm ~= term then
  if isContinued and hasSeenEnd() then
    redis.call('HSET', STATE, 'reign', term)
  elseif IS_LAST_CALL == '1' then
    beginAnother()
  else
    return {}
  end
end
if state[4] ~= PUBLISH_SCRIPT or epoch ~= state[1] then redis.call('HSET', STATE, 'publish', PUBLISH_SCRIPT) end
-- Another epoch may have begun.
if isContinued and epoch == NODE_EPOCH then return { epoch, NODE_OFFSET, '1', term, began } end
return { epoch, digits(startOfLog()), '0', term, began }
`
