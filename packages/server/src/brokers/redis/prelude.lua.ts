/**
 * Both scripts of the log begin with this.
 *
 * A message to the channel is `<epoch> <first offset> <Unix time in ms>\n`, then the length of each envelope in 4 bytes
 * and the envelope. A message without envelopes says that another epoch has begun.
 */
export const PRELUDE = /* lua */ `
-- The stream: one entry per message, its id is <offset>-<Unix time in ms>, its field m the envelope.
local STREAM = KEYS[1]
-- A hash: epoch, end (the last offset), bytes (of all envelopes so far), run (of the server), ids (when the ids were
-- begun), checkpoint and checkpointTime (bytes and time at the last checkpoint).
local STATE = KEYS[2]
-- Two hashes that map message ids to offsets; they take turns.
local IDS = KEYS[3]
local IDS_BEFORE = KEYS[4]
-- A list of <offset> <bytes> <time>. Tells what to trim.
local CHECKPOINTS = KEYS[5]

-- Makes an epoch unlike those before.
local EPOCH_SEED = ARGV[1]
-- The run of the server; '' when it does not tell.
local RUN = ARGV[2]
local CHANNEL = ARGV[3]
-- 'PUBLISH', in a cluster 'SPUBLISH'.
local PUBLISH = ARGV[4]

-- All digits: tostring would give 1e+15.
local function digits(number)
  return string.format('%.0f', number)
end

local function beginEpoch()
  local time = redis.call('TIME')
  -- 32 bits: a client mistakes this log for the one it knows with a chance of one in 4.3e9.
  local epoch = string.sub(redis.sha1hex(EPOCH_SEED .. time[1] .. '.' .. time[2]), 1, 8)
  redis.call('DEL', STREAM, STATE, IDS, IDS_BEFORE, CHECKPOINTS)
  redis.call('HSET', STATE, 'epoch', epoch, 'end', '0', 'run', RUN)
  return epoch
end
`
