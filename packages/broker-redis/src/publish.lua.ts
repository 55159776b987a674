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
ARGV[4] = currentTerm(redis.call('HGET', STATE, 'reign') or nil)
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

/** As `fingerprintOfPlace`: an entry without a source. Of any other, which has the same id by chance, it is not said. */
const TAIL = /* lua */ `
local function multiplied(a, b)
  local low, high = bit.tobit(a * bit.band(b, 0xffff)), bit.tobit(a * bit.rshift(b, 16))
  return bit.tobit(low + bit.lshift(high, 16))
end

local function mixed(hash, number)
  for _, word in ipairs({ math.floor(number / 2 ^ 32), number % 2 ^ 32 }) do
    local bits = multiplied(bit.tobit(word), 0xcc9e2d51)
    bits = bit.bxor(multiplied(bit.rol(bits, 15), 0x1b873593), hash)
    hash = bit.tobit(multiplied(bit.rol(bits, 13), 5) + 0xe6546b64)
  end
  return hash
end

local function finished(hash)
  local bits = multiplied(bit.bxor(hash, bit.rshift(hash, 16)), 0x85ebca6b)
  bits = multiplied(bit.bxor(bits, bit.rshift(bits, 13)), 0xc2b2ae35)
  return math.max(1, bit.rshift(bit.bxor(bits, bit.rshift(bits, 16)), 2))
end

local function fingerprintAt(offset)
  local entry = redis.call('XRANGE', STREAM, offset, offset)[1]
  local isKnown = entry and string.sub(entry[2][2], 11, 16) == string.rep('\\0', 6)
  local PLACE_SEED = 5
  local hash = isKnown and finished(mixed(mixed(PLACE_SEED, tonumber(offset)), tonumber(string.match(entry[1], '%d+$')))) or 0
  local letters, text = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', ''
  for shift = 24, 0, -6 do
    local digit = bit.band(bit.rshift(hash, shift), 63) + 1
    text = text .. string.sub(letters, digit, digit)
  end
  return text
end

local answer = append()
if type(answer) ~= 'string' then return answer end
local epoch, first, known = string.match(answer, '^(%S+) (%d+) ?(%d*)')
local offset, digitsOf36, text = tonumber(known) or tonumber(first), '0123456789abcdefghijklmnopqrstuvwxyz', ''
local fingerprint = fingerprintAt(digits(offset))
repeat
  local digit = offset % 36
  text = string.sub(digitsOf36, digit + 1, digit + 1) .. text
  offset = (offset - digit) / 36
until offset == 0
return epoch .. ':' .. text .. '.' .. fingerprint .. (known == '' and '' or ' duplicate')`
