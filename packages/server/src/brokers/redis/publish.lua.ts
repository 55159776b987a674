import { APPEND } from './append.lua.js'
import { PRELUDE } from './prelude.lua.js'

/**
 * Makes the script with which other programs publish to logged keys. The log holds it, so they need nothing else:
 *
 *     EVAL <script> 1 <log> <key> <payload> [<message id>]
 *
 * Returns the position; with ` duplicate` behind it when the log has the message id.
 * @param bounds The arguments of {@link APPEND} that are the same for all messages, from MAX_MESSAGES on.
 */
export function publishScriptOf(
  channel: string,
  publishCommand: 'PUBLISH' | 'SPUBLISH',
  bounds: readonly string[],
): string {
  const texts = ['', channel, publishCommand].map((each) => JSON.stringify(each)).join(', ')
  return `${HEAD}
local ARGV = { ${texts}, '', ${bounds.map((each) => JSON.stringify(each)).join(', ')}, envelope, ID }
${PRELUDE}
ARGV[4] = currentReign(redis.call('HGET', STATE, 'reign') or nil)
local function append()
${APPEND}
end
${TAIL}`.trim()
}

/** The sequence of a node's message is never 0: the envelope of another program has no source. */
const HEAD = /* lua */ `
local LOG = KEYS[1]
local KEYS = { LOG, LOG .. '/state', LOG .. '/ids', LOG .. '/ids-before', LOG .. '/checkpoints' }
local KEY, PAYLOAD, ID = ARGV[1], ARGV[2], ARGV[3] or ''
if not PAYLOAD or #KEY < 1 or #KEY > 255 or #ID > 255 then
  return redis.error_reply('ERR use <key> <payload> [<message id>], key and id of at most 255 bytes')
end
local FLAGS = 64 + 4 + (ID == '' and 0 or 16)
local envelope = string.char(0, FLAGS) .. string.rep('\\0', 14) .. string.char(#KEY) .. KEY
if ID ~= '' then envelope = envelope .. string.char(#ID) .. ID end
envelope = envelope .. PAYLOAD`

const TAIL = /* lua */ `
local answer = append()
if type(answer) ~= 'string' then return answer end
local epoch, first, known = string.match(answer, '^(%S+) (%d+) ?(%d*)')
local offset, digitsOf36, text = tonumber(known) or tonumber(first), '0123456789abcdefghijklmnopqrstuvwxyz', ''
repeat
  local digit = offset % 36
  text = string.sub(digitsOf36, digit + 1, digit + 1) .. text
  offset = (offset - digit) / 36
until offset == 0
return epoch .. ':' .. text .. (known == '' and '' or ' duplicate')`
