import { isUtf8 } from 'node:buffer'
import type { StreamKind } from 'webmq-client/protocol'
import type { Broker, OutboundMessage } from '../../src/kernel/ports/broker.js'
import type { HostileText } from './texts.js'

/** Where in a log a text may be that another program, or another version, has written there. */
export type LogPlace = 'message' | StreamKind | 'text, its head' | 'text, its content' | 'append of a shared stream'

/** How a reader of the last stream of the key is shown it. */
export type Shown = 'meta' | 'result' | 'no member'

interface Layout {
  /** The messages of the key, in their order. */
  readonly messages: (text: HostileText, stream: string) => readonly LoggedMessage[]
  readonly shown: Shown
}

interface LoggedMessage {
  /** `number:kind`, and what servers note; absent: no message of a stream. */
  readonly place?: string
  readonly payload: Uint8Array
  /** Default: whether its bytes are no UTF-8. */
  readonly isBinary?: boolean
  readonly isEphemeral?: true
}

const EMPTY = new Uint8Array()
const START: LoggedMessage = { place: '0:start', payload: EMPTY }
const APPEND: LoggedMessage = { place: '1:append', payload: Buffer.from('"content"') }
const END: LoggedMessage = { place: '2:end', payload: EMPTY }
const MARK = 'abcdefgh,0'
const SHARED_START: LoggedMessage = {
  place: `0:start:${MARK}`,
  payload: Buffer.from('{"contentType":"application/json"}'),
}
const BYTES_APPEND: LoggedMessage = { place: `1:append:${MARK}`, payload: Buffer.from('1\n'), isBinary: true }

const ending = (kind: string, shown: Shown): Layout => ({
  messages: ({ bytes }) => [START, APPEND, { place: `2:${kind}`, payload: bytes }],
  shown,
})

/** A kind of message of a stream without a row does not compile. */
const LAYOUTS = {
  message: { messages: ({ bytes }) => [{ payload: bytes }], shown: 'no member' },
  start: { messages: ({ bytes }) => [{ place: '0:start', payload: bytes }, APPEND, END], shown: 'meta' },
  append: { messages: ({ bytes }) => [START, { place: '1:append', payload: bytes }, END], shown: 'no member' },
  beat: {
    messages: ({ bytes }) => [START, { place: '0:beat', payload: bytes, isEphemeral: true }, APPEND, END],
    shown: 'no member',
  },
  end: ending('end', 'result'),
  fail: ending('fail', 'result'),
  stop: ending('stop', 'no member'),
  lost: ending('lost', 'no member'),
  text: {
    messages: ({ bytes }) => [START, APPEND, END, { place: '2:text', payload: bytes }],
    shown: 'no member',
  },
  'text, its head': {
    messages: ({ bytes }) => [
      START,
      APPEND,
      END,
      { place: '2:text', payload: rollUp(Buffer.concat([Buffer.from('{"status":"end","meta":'), bytes, REST])) },
    ],
    shown: 'no member',
  },
  'text, its content': {
    messages: ({ bytes }) => [
      START,
      APPEND,
      END,
      { place: '2:text', payload: rollUp(Buffer.concat([Buffer.from('{"status":"end"'), REST]), bytes) },
    ],
    shown: 'no member',
  },
  'append of a shared stream': {
    messages: ({ bytes }) => [SHARED_START, { place: `1:append:${MARK}`, payload: bytes, isBinary: true }],
    shown: 'no member',
  },
  close: {
    messages: ({ bytes }) => [SHARED_START, BYTES_APPEND, { place: `2:close:${MARK}`, payload: bytes, isBinary: true }],
    shown: 'no member',
  },
  delete: {
    messages: ({ bytes }) => [SHARED_START, BYTES_APPEND, { place: `2:delete:${MARK}`, payload: bytes }],
    shown: 'no member',
  },
} as const satisfies Record<LogPlace, Layout>

const REST = Buffer.from(',"appendCount":1,"byteCount":9,"upTo":0}')

function rollUp(head: Uint8Array, content: Uint8Array = Buffer.from('"content"')): Buffer {
  return Buffer.concat([head, Buffer.from('\n'), content])
}

export const LOG_PLACES = Object.keys(LAYOUTS) as LogPlace[]

export function shownOf(place: LogPlace): Shown {
  return LAYOUTS[place].shown
}

/** Writes to a log as a node of another version would, which checks nothing. */
export async function writeForeign(
  broker: Pick<Broker, 'publish'>,
  place: LogPlace,
  text: HostileText,
  key: string,
): Promise<void> {
  const stream = `F${key.replaceAll('.', '-')}`
  const layout: Layout = LAYOUTS[place]
  for (const message of layout.messages(text, stream)) await broker.publish(outboundOf(message, key, stream))
}

function outboundOf(
  { place, payload, isBinary, isEphemeral }: LoggedMessage,
  key: string,
  stream: string,
): OutboundMessage {
  const attributes = {
    ...(place === undefined ? {} : { stream: `${stream}:${place}` }),
    ...(isEphemeral === true ? { isEphemeral } : {}),
  }
  // Brokers hand out what is no UTF-8 as bytes.
  return { key, payload, isBinary: isBinary ?? !isUtf8(payload), attributes }
}
