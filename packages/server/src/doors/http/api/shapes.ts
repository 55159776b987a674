import { MAX_KEY_BYTES, MAX_MESSAGE_ID_CHARS, MAX_POSITION_CHARS, type WriteKind } from 'webmq-client/protocol'
import {
  answer,
  anything,
  choice,
  count,
  flag,
  integer,
  object,
  oneOf,
  optional,
  text,
} from '../../../kernel/base/shape.js'
import { MAX_UNIX_S } from '../../../kernel/identity/revocations.js'
import { MAX_CLAIM_CHARS, USER } from './operator-shapes.js'

const MAX_ADDRESS_CHARS = 64
/** What attributes of a message can hold. */
const MAX_TIME_MS = 2 ** 48 - 1
/** Characters of base64 for the largest payload that an option allows, 64 MiB. */
const MAX_BASE64_CHARS = 89_478_488

const KEY_TEXT = text({
  maxLength: MAX_KEY_BYTES,
  description: 'A key: words joined by dots, without spaces and wildcards, at most 255 bytes of UTF-8.',
  examples: ['chat.42.message'],
})

/** The pattern is for readers and generators of requests. The handlers check keys, with a code that says more. */
export const KEY: typeof KEY_TEXT = {
  ...KEY_TEXT,
  json: { ...KEY_TEXT.json, pattern: '^(?!\\$)[^*#\\x00-\\x20\\x7f-\\x9f]+$' },
}

export const MESSAGE_ID = text({
  maxLength: MAX_MESSAGE_ID_CHARS,
  pattern: '^[A-Za-z0-9_-]+$',
  description: 'A second message of the same caller with this id and key is not delivered within the dedupe window.',
  examples: ['order-1017'],
})

export const POSITION = text({
  maxLength: MAX_POSITION_CHARS,
  description: 'A position in the log, `epoch:offset.fingerprint`.',
  examples: ['m8qk2:1f.9Zp-k'],
})

export const TOKEN_ID = text({
  maxLength: MAX_CLAIM_CHARS,
  description: 'The `jti` of a token.',
  examples: ['0c6f2a'],
})

export const ADDRESS = text({
  maxLength: MAX_ADDRESS_CHARS,
  description: 'The IP address of a client.',
  examples: ['203.0.113.7'],
})

export const UNTIL = integer({
  minimum: 0,
  maximum: MAX_UNIX_S,
  description: 'Unix time in seconds: the latest `exp` of the revoked tokens.',
  examples: [4_102_444_800],
})

const PAYLOAD = anything({ description: 'Any JSON value.', examples: [{ text: 'hello' }] })

const BASE64 = text({
  minLength: 0,
  maxLength: MAX_BASE64_CHARS,
  pattern: '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  description: 'Bytes, in base64. Clients get them as a binary payload.',
  examples: ['aGVsbG8='],
})

export const EPHEMERAL = flag({ description: 'The message reaches live listeners only: it is not logged.' })

export const MESSAGE = oneOf([
  object({ key: KEY, payload: PAYLOAD, id: optional(MESSAGE_ID), ephemeral: optional(EPHEMERAL) }),
  object({ key: KEY, base64: BASE64, id: optional(MESSAGE_ID), ephemeral: optional(EPHEMERAL) }),
])

const WRITE_KINDS = ['start', 'append', 'beat', 'end', 'fail', 'stop'] as const satisfies WriteKind[]
const MAX_STREAM_ID_CHARS = 36
export const MAX_META_CHARS = 4_096

export const STREAM_ID = text({
  maxLength: MAX_STREAM_ID_CHARS,
  pattern: '^[A-Za-z0-9_-]+$',
  description: 'The id of a stream.',
  examples: ['Zx0aB3kQ9mT1uVwY'],
})

const WRITE = {
  key: KEY,
  stream: STREAM_ID,
  sequence: count({
    description: '0 for `start`; each later message has the next number, a `beat` that of the last one.',
  }),
  kind: choice(WRITE_KINDS, { description: 'What the message is; `beat`: the writer is alive.' }),
}

export const STREAM_WRITE = oneOf([
  object({
    ...WRITE,
    payload: optional(anything({ description: 'For `append` a text; for `start` and the ends any JSON value.' })),
  }),
  object({ ...WRITE, base64: BASE64 }),
])

export const LOGGED_MESSAGE = answer({
  key: KEY,
  position: optional(POSITION),
  userId: optional(USER),
  timeMs: optional(
    integer({ minimum: 0, maximum: MAX_TIME_MS, description: 'When the server took it, Unix time in milliseconds.' }),
  ),
  id: optional(text({ maxLength: MAX_MESSAGE_ID_CHARS, description: 'Names the message for all who get it.' })),
  stream: optional(
    answer({
      id: STREAM_ID,
      sequence: count(),
      kind: text({ maxLength: 16, description: 'What the message is in its stream.' }),
    }),
  ),
  payload: optional(anything({ description: 'The JSON value of a text message.' })),
  text: optional(text({ minLength: 0, maxLength: MAX_BASE64_CHARS, description: 'A text message that is no JSON.' })),
  base64: optional(text({ minLength: 0, maxLength: MAX_BASE64_CHARS, description: 'A binary message.' })),
})

export const PROBLEM = answer({
  code: text({ maxLength: 64, description: 'A code of errors.md: act on it.', examples: ['E_KEY_INVALID'] }),
  message: text({ minLength: 0, maxLength: 4_096, description: 'For people; may change.' }),
  docs: text({ maxLength: 256, description: 'A link to the cause and the fix.', format: 'uri' }),
})
