import { checkKey, checks } from '../../core/checks.js'
import { type ClientOption, clientOf, type GivenClient, partOf } from '../../core/of-client.js'
import { invalid } from '../../core/options.js'
import { randomName } from '../../core/publishing/random-name.js'
import type { StreamOf, Topics } from '../../core/topics/topics.js'
import { ask } from './asking.js'
import { LiveReader } from './reader.js'
import type { OpenStreamOptions, ReadStreamOptions, StreamReader, StreamWriter } from './types.js'
import { LiveWriter, Writers } from './writer.js'

export type * from './types.js'

const writersOf = partOf((core) => new Writers(core))

/**
 * Begins a stream: a message that grows until it ends. Resolves when the server has accepted it. Needs the grants to publish
 * and to listen at the key; without the latter nobody can stop it.
 * @throws {WebMQError} `E_STREAM_BUSY`: another stream of the key has not ended; `E_UNSUPPORTED`: the key is not logged;
 * `E_STREAM_LIMIT`, `E_KEY_INVALID`, `E_OPTION_INVALID`, `E_FORBIDDEN`, `E_CLOSED`.
 */
export async function openStream<const K extends string, T = Topics>(
  key: K,
  options: OpenStreamOptions<StreamOf<T, K>> & ClientOption<T> = {},
): Promise<StreamWriter<StreamOf<T, K>>> {
  checks.part?.('openStream', options)
  const { client: given, meta, id = randomName() } = options
  checkKey(key)
  if (!/^[\w-]{1,36}$/.test(id)) throw invalid(`id ${id}`)
  const client = clientOf(given)
  const writers = writersOf(client)
  const closedBy = writers.core.closedBy()
  if (closedBy) throw closedBy
  client.connect().catch(() => undefined)
  const writer = new LiveWriter(writers, client, key, id)
  await writer.start(meta)
  return writer as StreamWriter<StreamOf<T, K>>
}

/**
 * Reads the stream of a key: what was written so far, and then what is being written, across reconnects. If the key has no
 * stream, it waits for one. Needs the grant to listen.
 * @throws {WebMQError} `E_KEY_INVALID`.
 */
export function readStream<const K extends string, T = Topics>(
  key: K,
  { client, ...options }: ReadStreamOptions & ClientOption<T> = {},
): StreamReader<StreamOf<T, K>> {
  checks.part?.('readStream', options)
  checkKey(key)
  const reader: StreamReader = new LiveReader(client, key, options)
  return reader as StreamReader<StreamOf<T, K>>
}

/**
 * Asks the writer of a key to stop. Resolves when it knows. Needs the grant to publish.
 * @throws {WebMQError} `E_NO_RESPONDERS`: nobody writes; otherwise as `request`.
 */
export async function stopStream(
  key: string,
  options: { readonly reason?: string; readonly client?: GivenClient } = {},
): Promise<void> {
  checks.part?.('stopStream', options)
  const { client, reason } = options
  checkKey(key)
  await ask(client, key, { type: 'stop', ...(reason !== undefined && { reason }) })
}
