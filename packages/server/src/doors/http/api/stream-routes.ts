import { answer, anything, choice, count, flag, optional, text } from '../../../kernel/base/shape.js'
import { route } from './route.js'
import { KEY, MAX_META_CHARS, POSITION, STREAM_ID, STREAM_WRITE } from './shapes.js'

/** The largest stream that an option allows, in base64. */
const MAX_STREAM_CHARS = 89_478_488

export const STREAM_ROUTES = {
  writeStream: route({
    method: 'POST',
    path: '/api/streams',
    access: 'client',
    summary: 'Write a stream',
    description:
      'A body of `text/plain` or `application/octet-stream` is a whole stream of the key in the query: what arrives is appended, ' +
      'and the end of the body ends it. An answer before the end of the body means that the stream has ended: somebody has ' +
      'stopped it, or it was refused. A body of JSON is one message of a stream; a retry is found to be a duplicate.',
    parameters: {
      key: optional(KEY),
      meta: optional(text({ maxLength: MAX_META_CHARS, description: 'JSON that readers get with a whole stream.' })),
    },
    body: {
      shape: STREAM_WRITE,
      size: 'message',
      examples: {
        start: { key: 'chat.42.answer', stream: 'Zx0aB3kQ', sequence: 0, kind: 'start', payload: { model: 'small' } },
        append: { key: 'chat.42.answer', stream: 'Zx0aB3kQ', sequence: 1, kind: 'append', payload: 'Once upon' },
        end: { key: 'chat.42.answer', stream: 'Zx0aB3kQ', sequence: 2, kind: 'end' },
      },
    },
    takesFlow: true,
    answer: answer({
      stream: STREAM_ID,
      status: optional(choice(['end', 'stop'], { description: 'Of a whole stream. `stop`: somebody has stopped it.' })),
      duplicate: optional(flag({ description: 'Of one message: it was accepted before.' })),
      position: optional(POSITION),
    }),
    errors: [
      'E_KEY_INVALID',
      'E_PAYLOAD_INVALID',
      'E_STREAM_BUSY',
      'E_STREAM_ENDED',
      'E_STREAM_SEQUENCE',
      'E_STREAM_LIMIT',
      'E_STATE_LIMIT',
      'E_LISTEN_LIMIT',
      'E_UNSUPPORTED',
      'E_NODE_BEHIND',
      'E_BROKER_UNAVAILABLE',
      'E_TIMEOUT',
    ],
  }),
  readStream: route({
    method: 'GET',
    path: '/api/streams',
    access: 'client',
    summary: 'Read the last stream of a key',
    description:
      'All that was written so far. With `Accept: text/plain` or `application/octet-stream` the body is what was written, and ' +
      'headers `webmq-…` say the rest. A client needs the grant to listen to the key.',
    parameters: { key: KEY },
    answersRaw: true,
    answer: answer({
      stream: optional(STREAM_ID),
      sequence: optional(count({ description: 'Number of its last message.' })),
      status: optional(choice(['active', 'end', 'fail', 'stop', 'lost'], { description: 'How the stream stands.' })),
      meta: optional(anything({ description: 'As given to its start.' })),
      result: optional(anything({ description: 'As given to its end.' })),
      isCut: optional(flag({ description: 'A part of it is no longer in the log.' })),
      text: optional(text({ minLength: 0, maxLength: MAX_STREAM_CHARS, description: 'Of a stream of text.' })),
      base64: optional(text({ minLength: 0, maxLength: MAX_STREAM_CHARS, description: 'Of a stream of bytes.' })),
      position: POSITION,
      gap: optional(text({ maxLength: 64, description: 'Why messages of the key may be missing.' })),
    }),
    errors: ['E_KEY_INVALID', 'E_STREAM_LIMIT', 'E_UNSUPPORTED', 'E_NODE_BEHIND', 'E_BROKER_UNAVAILABLE'],
  }),
} as const
