import { createHash } from 'node:crypto'

/**
 * What the last life of a server may have lost is never given out again: offsets leap by this much when it begins another, which
 * is more messages than a Redis takes in the time for which it can lose them.
 */
const LEAP = 2 ** 24

/*
 * Both scripts:
 *
 * KEYS  the stream: an entry `<offset>-<Unix time in ms>` for each message, its field `m` the envelope
 *       the state: hash of `epoch`, `end` (the last offset), `bytes` (of all envelopes so far), `mark` and `markTime` (`bytes` and the time at
 *       the last mark), `run` (the life of the server) and `ids` (when the ids were begun)
 *       ids of messages: hash to offsets; and the ids from before those
 *       marks: a list of `<offset> <bytes> <time>`, from which follows what may go
 * ARGV  what makes a new epoch unlike all others, `run` of this server ('' when it does not tell), the channel
 *
 * A message to the channel is `<epoch> <offset of the first> <Unix time in ms>\n`, then for each its length, 4 bytes, and
 * the envelope; without any, it says that there is another epoch.
 */
const PRELUDE = `
local function text(number) return string.format('%.0f', number) end
local function begin()
  local time = redis.call('TIME')
  local epoch = ARGV[1] .. string.format('%x', time[1] * 1000000 + time[2])
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
  redis.call('HSET', KEYS[2], 'epoch', epoch, 'end', '0', 'run', ARGV[2])
  return epoch
end
`

/** The bounds of bytes and age are kept to this part of themselves: there are as many marks for each, and some more. */
const MARKS = 64
const MIN_MARK_MS = 100

/**
 * ARGV, further: what to keep in messages, in bytes of envelopes and in ms ('' for any age), for how many ms and how many ids of messages
 * ('' when none follows), then for each message its envelope and its id ('' for none).
 * Returns `<epoch> <offset of the first>`; and, when some are duplicates, the offset of the first with that id for each, or nothing,
 * separated by commas.
 */
const APPEND = `${PRELUDE}
local state = redis.call('HMGET', KEYS[2], 'epoch', 'end', 'bytes', 'mark', 'markTime', 'ids')
local epoch, last = state[1], tonumber(state[2])
if not epoch then epoch, last, state = begin(), 0, {} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local hasNewIds = false
if ARGV[7] ~= '' and (now - (tonumber(state[6]) or 0) >= tonumber(ARGV[7]) or redis.call('HLEN', KEYS[3]) >= tonumber(ARGV[8])) then
  hasNewIds = true
  if redis.call('EXISTS', KEYS[3]) == 1 then
    redis.call('UNLINK', KEYS[4])
    redis.call('RENAME', KEYS[3], KEYS[4])
    redis.call('PEXPIRE', KEYS[4], ARGV[7])
  end
end
local first, nowText, live, known, hasKnown, bytes = last + 1, text(now), {}, {}, false, tonumber(state[3]) or 0
for at = 9, #ARGV, 2 do
  local envelope, id, before = ARGV[at], ARGV[at + 1], false
  local offset = text(last + 1)
  if id ~= '' then
    before = redis.call('HGET', KEYS[4], id)
    if not before and redis.call('HSETNX', KEYS[3], id, offset) == 0 then before = redis.call('HGET', KEYS[3], id) end
  end
  if before then
    hasKnown = true
  else
    last = last + 1
    bytes = bytes + #envelope
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], offset .. '-' .. nowText, 'm', envelope)
    live[#live + 1] = struct.pack('>I4', #envelope)
    live[#live + 1] = envelope
  end
  known[#known + 1] = before or ''
end
if hasNewIds then
  redis.call('HSET', KEYS[2], 'ids', nowText)
  redis.call('PEXPIRE', KEYS[3], 2 * ARGV[7])
end
if last >= first then
  redis.call('HSET', KEYS[2], 'end', text(last), 'bytes', text(bytes))
  local maxBytes, maxAge = tonumber(ARGV[5]), tonumber(ARGV[6]) or math.huge
  local isMark = bytes - (tonumber(state[4]) or 0) >= maxBytes / ${MARKS}
  if isMark or now - (tonumber(state[5]) or 0) >= math.max(${MIN_MARK_MS}, maxAge / ${MARKS}) then
    redis.call('RPUSH', KEYS[5], text(last) .. ' ' .. text(bytes) .. ' ' .. nowText)
    redis.call('HSET', KEYS[2], 'mark', text(bytes), 'markTime', nowText)
    local floor
    while true do
      local mark = redis.call('LINDEX', KEYS[5], 0)
      local offset, before, markTime = string.match(mark, '(%d+) (%d+) (%d+)')
      if bytes - before <= maxBytes and now - markTime <= maxAge then break end
      floor = offset
      redis.call('LPOP', KEYS[5])
    end
    if floor then redis.call('XTRIM', KEYS[1], 'MINID', text(floor + 1)) end
  end
  redis.call('PUBLISH', ARGV[3], epoch .. ' ' .. text(first) .. ' ' .. nowText .. '\\n' .. table.concat(live))
end
local answer = epoch .. ' ' .. text(first)
if hasKnown then return answer .. ' ' .. table.concat(known, ',') end
return answer
`

/**
 * ARGV, further: epoch and offset of the place that a node has come to ('' for none), and node and sequence of the message there as they stand in
 * its envelope ('' when not known).
 * Returns the epoch, the offset after which the node is to read, '1' when that continues from its place, and the end of the log.
 *
 * A log that no longer has the message at that place, and has others before it, has lost its end: it ends here, and
 * another begins.
 */
const OPEN = `${PRELUDE}
local state = redis.call('HMGET', KEYS[2], 'epoch', 'end', 'run')
local epoch, last = state[1], tonumber(state[2])
local function beginAnother()
  epoch, last = begin(), 0
  redis.call('PUBLISH', ARGV[3], epoch .. ' 0 0\\n')
end
if not epoch then
  beginAnother()
elseif ARGV[2] ~= '' and state[3] ~= ARGV[2] then
  if last > 0 then last = last + ${LEAP} end
  redis.call('HSET', KEYS[2], 'run', ARGV[2], 'end', text(last))
end
local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local start = last
if oldest then start = tonumber(string.match(oldest[1], '^%d+')) - 1 end
if ARGV[4] == epoch then
  local place = tonumber(ARGV[5])
  local entry = redis.call('XRANGE', KEYS[1], ARGV[5], ARGV[5], 'COUNT', 1)[1]
  local isLost = place > last or (not entry and start < place)
  if entry and ARGV[6] ~= '' then isLost = string.sub(entry[2][2], 3, 16) ~= ARGV[6] end
  if isLost then
    beginAnother()
    start = 0
  elseif entry or place == start then
    return { epoch, ARGV[5], '1', text(last) }
  end
end
return { epoch, text(start), '0', text(last) }
`

/** A script of the log, as it is called. */
export interface LogScript {
  readonly source: string
  /** What EVALSHA calls it. */
  readonly sha: string
}

/** The scripts of the log. */
export interface LogScripts {
  /** Gives messages their places, stores and publishes them. */
  readonly append: LogScript
  /** Says where a node is to read on. */
  readonly open: LogScript
}

/** @param command What publishes: `SPUBLISH` in a cluster. */
export function logScripts(command: 'PUBLISH' | 'SPUBLISH'): LogScripts {
  const [append, open] = [APPEND, OPEN].map((text) => {
    const source = text.trim().replace("'PUBLISH'", `'${command}'`)
    return { source, sha: createHash('sha1').update(source).digest('hex') }
  }) as [LogScript, LogScript]
  return { append, open }
}
