import { clientOf, type GivenClient, scopeOf } from '../../core/of-client.js'
import type { StreamInput, StreamOutput, StreamTypes } from '../../core/topics/topics.js'
import { type ReadStatus, readStream, type StreamReader } from '../../parts/stream/index.js'
import { WebMQError } from '../../protocol/errors.js'
import { constantStore, type Store, sharedStore } from './store.js'

/** Options of a stream that components share. */
export interface StreamOptions {
  /** Shows this stream alone. Default: the last one of the key. */
  readonly id?: string
  /** Time between the end of the last component with this stream and that of its listen; default 1,000. */
  readonly graceMs?: number
}

/** A stream, as far as it is written. */
export interface StreamSnapshot<S = StreamTypes>
  extends Pick<StreamReader<S>, 'id' | 'isCut' | 'meta' | 'result' | 'error'> {
  /** What was written so far; `''` of a stream of bytes. */
  readonly text: string
  /** The same of a stream of bytes. */
  readonly bytes: Uint8Array | undefined
  readonly status: ReadStatus
  /** Asks the writer to stop. Resolves when it knows, or there is no writer. */
  readonly stop: (reason?: string) => Promise<void>
  /** Sends data to the writer. Resolves with its reply. */
  readonly send: (data: StreamInput<S, 'message'>) => Promise<StreamOutput<S, 'reply'>>
}

const EMPTY: StreamSnapshot = {
  id: undefined,
  text: '',
  bytes: undefined,
  status: 'loading',
  isCut: false,
  meta: undefined,
  result: undefined,
  error: undefined,
  stop: async () => undefined,
  send: async () => {
    throw new WebMQError('E_NO_RESPONDERS')
  },
}

/** The store of the stream of `key`; of none if it is `null`. */
export function streamStore(
  client: GivenClient,
  key: string | null,
  { graceMs, ...options }: StreamOptions = {},
): Store<StreamSnapshot> {
  if (key === null) return constantStore<StreamSnapshot>({ ...EMPTY, status: 'none' })
  const open = (changed: () => void) => {
    const reader = readStream(key, { ...options, client: clientOf(client) })
    reader.onChange(changed)
    const stop = (reason?: string) => reader.stop(reason)
    const send = (data: unknown) => reader.send(data)
    return {
      close: () => reader.close(),
      read: (): StreamSnapshot => {
        const { id, content, status, isCut, meta, result, error } = reader
        const shown = typeof content === 'string' ? { text: content, bytes: undefined } : { text: '', bytes: content }
        return { id, ...shown, status, isCut, meta, result, error, stop, send }
      },
    }
  }
  return sharedStore<StreamSnapshot>(scopeOf(client), `stream ${key} ${JSON.stringify(options)}`, EMPTY, open, graceMs)
}
