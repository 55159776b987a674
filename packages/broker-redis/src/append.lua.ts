/**
 * Gives messages their offsets, stores them, trims the log and publishes the messages.
 *
 * Returns `<epoch> <first offset>`. When some messages are duplicates, a comma-separated list follows: for each message
 * the offset of the first message with its id, or nothing.
 */
export const APPEND = /* lua */ `
-- The term in which the caller has opened the log.
local TERM = ARGV[4]
local MAX_MESSAGES = ARGV[5]
local MAX_BYTES = tonumber(ARGV[6])
-- '' for any age.
local MAX_AGE_MS = tonumber(ARGV[7]) or math.huge
-- Both '' when no message has an id.
local ID_WINDOW_MS = tonumber(ARGV[8])
local MAX_IDS = tonumber(ARGV[9])
-- For each message its envelope and its id ('' for none).
local FIRST_MESSAGE = 10

-- The bounds of bytes and age hold to this part of themselves.
local CHECKPOINTS_PER_BOUND = 64
local MIN_CHECKPOINT_MS = 100

local state = redis.call('HMGET', STATE, 'epoch', 'end', 'bytes', 'checkpoint', 'checkpointTime', 'ids', 'reign')
local epoch, last = state[1], tonumber(state[2])
if not epoch then
  epoch, last, state = beginLog(TERM), 0, {}
elseif state[7] ~= TERM then
  return redis.error_reply('REIGN no node has opened the log since this server became the master')
end
local bytes = tonumber(state[3]) or 0
local checkpoint = tonumber(state[4]) or 0
local checkpointTime = tonumber(state[5]) or 0
local idsBegan = tonumber(state[6]) or 0
local now = nowMs()

-- Ids live for one to two windows: in this hash, then in the one before.
local hasNewIds = false
if ID_WINDOW_MS and (now - idsBegan >= ID_WINDOW_MS or redis.call('HLEN', IDS) >= MAX_IDS) then
  hasNewIds = true
  if redis.call('EXISTS', IDS) == 1 then
    redis.call('UNLINK', IDS_BEFORE)
    redis.call('RENAME', IDS, IDS_BEFORE)
    redis.call('PEXPIRE', IDS_BEFORE, ID_WINDOW_MS)
  end
end

local first = last + 1
local published, duplicates, hasDuplicates = {}, {}, false
for at = FIRST_MESSAGE, #ARGV, 2 do
  local envelope, id = ARGV[at], ARGV[at + 1]
  local offset = digits(last + 1)
  local before = false
  if id ~= '' then
    before = redis.call('HGET', IDS_BEFORE, id)
    if not before and redis.call('HSETNX', IDS, id, offset) == 0 then
      before = redis.call('HGET', IDS, id)
    end
  end
  if before then
    hasDuplicates = true
  else
    last = last + 1
    bytes = bytes + #envelope
    redis.call('XADD', STREAM, 'MAXLEN', '~', MAX_MESSAGES, offset .. '-' .. digits(now), 'm', envelope)
    published[#published + 1] = struct.pack('>I4', #envelope)
    published[#published + 1] = envelope
  end
  duplicates[#duplicates + 1] = before or ''
end

if hasNewIds then
  redis.call('HSET', STATE, 'ids', digits(now))
  redis.call('PEXPIRE', IDS, 2 * ID_WINDOW_MS)
end

-- Trims up to the newest checkpoint after which the bounds still hold.
local function trim()
  redis.call('RPUSH', CHECKPOINTS, digits(last) .. ' ' .. digits(bytes) .. ' ' .. digits(now))
  redis.call('HSET', STATE, 'checkpoint', digits(bytes), 'checkpointTime', digits(now))
  local trimmed
  while true do
    local oldest = redis.call('LINDEX', CHECKPOINTS, 0)
    local offset, bytesBefore, timeBefore = string.match(oldest, '(%d+) (%d+) (%d+)')
    if bytes - bytesBefore <= MAX_BYTES and now - timeBefore <= MAX_AGE_MS then break end
    trimmed = offset
    redis.call('LPOP', CHECKPOINTS)
  end
  if trimmed then redis.call('XTRIM', STREAM, 'MINID', digits(trimmed + 1)) end
end

if last >= first then
  redis.call('HSET', STATE, 'end', digits(last), 'bytes', digits(bytes))
  local checkpointMs = math.max(MIN_CHECKPOINT_MS, MAX_AGE_MS / CHECKPOINTS_PER_BOUND)
  if bytes - checkpoint >= MAX_BYTES / CHECKPOINTS_PER_BOUND or now - checkpointTime >= checkpointMs then trim() end
  local head = epoch .. ' ' .. digits(first) .. ' ' .. digits(now) .. '\\n'
  redis.call(PUBLISH, CHANNEL, head .. table.concat(published))
end
local answer = epoch .. ' ' .. digits(first)
if hasDuplicates then return answer .. ' ' .. table.concat(duplicates, ',') end
return answer
`
