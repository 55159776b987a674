/**
 * All scripts of the log begin with this.
 *
 * A message to the channel is `<epoch> <first offset> <Unix time in ms>\n`, then the length of each envelope in 4 bytes
 * and the envelope. A message without envelopes says that another epoch has begun.
 */
export const PRELUDE = /* lua */ `
-- The stream: one entry per message. Its id is <offset>-<Unix time in ms>, its field m the envelope.
local STREAM = KEYS[1]
-- A hash: epoch, began (the offset before it), end (the last offset), bytes (of all envelopes so far), term (see below), publish (the script for
-- other programs), rules (of
-- all nodes since the epoch began, a hash; '' or absent: nobody knows), ids (when the ids were begun), checkpoint and checkpointTime (bytes and time at the last checkpoint).
local STATE = KEYS[2]
-- Two hashes that map message ids to offsets; they take turns.
local IDS = KEYS[3]
local IDS_BEFORE = KEYS[4]
-- A list of <offset> <bytes> <time>. Tells what to trim.
local CHECKPOINTS = KEYS[5]

-- Makes an epoch unlike those before.
local EPOCH_SEED = ARGV[1]
local CHANNEL = ARGV[2]
-- 'PUBLISH', in a cluster 'SPUBLISH'.
local PUBLISH = ARGV[3]

-- All digits: tostring would give 1e+15.
local function digits(number)
  return string.format('%.0f', number)
end

local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Hexadecimal.
local function randomText()
  local time = redis.call('TIME')
  return redis.sha1hex(EPOCH_SEED .. time[1] .. '.' .. time[2])
end

local function infoOf(section, name)
  return string.match(redis.call('INFO', section), name .. ':(%w+)') or ''
end

-- A term is the time from when a server starts, or becomes the master, until it ends or is replaced. Only a change of
-- the term can lose the end of the log. The run id changes when the server starts, and master_replid2 when it becomes
-- the master. The latter turns to zeros when the server has had no replica for an hour.
local function currentTerm(known)
  local run, promotion = infoOf('server', 'run_id'), infoOf('replication', 'master_replid2')
  if string.match(promotion, '^0*$') then promotion = '' end
  if promotion == '' and known and string.sub(known, 1, #run + 1) == run .. '.' then return known end
  return run .. '.' .. string.sub(promotion, 1, 8)
end

-- What the log has stays, up to this offset, and is of an earlier epoch.
local function beginEpoch(term, offset)
  -- 32 bits: a client mistakes this log for the one it knows with a chance of one in 4.3e9.
  local epoch = string.sub(randomText(), 1, 8)
  redis.call('HSET', STATE, 'epoch', epoch, 'began', digits(offset), 'end', digits(offset), 'reign', term)
  return epoch
end

-- Begins an empty log.
local function beginLog(term)
  redis.call('DEL', STREAM, STATE, IDS, IDS_BEFORE, CHECKPOINTS)
  return beginEpoch(term, 0)
end
`
