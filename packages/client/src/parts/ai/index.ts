import type { ChatRequestOptions, ChatTransport, UIMessage, UIMessageChunk } from 'ai'
import { checks } from '../../core/checks.js'
import type { Awaitable } from '../../core/client-options.js'
import type { GivenClient } from '../../core/of-client.js'
import { WebMQError } from '../../protocol/errors.js'
import { request } from '../requests/index.js'
import { readStream, type StreamReader, type StreamWriter } from '../stream/index.js'

/** Asks for an answer: what the SDK gives to a transport. */
export interface AnswerRequest<M extends UIMessage = UIMessage> {
  readonly chatId: string
  readonly messages: readonly M[]
  readonly trigger: 'submit-message' | 'regenerate-message'
  readonly messageId: string | undefined
  readonly body: ChatRequestOptions['body'] | undefined
  readonly metadata: unknown
}

/** Options of {@link streamTransport}. */
export interface StreamTransportOptions<M extends UIMessage = UIMessage> {
  /** Key of the answers of a chat. Default: `chat.<chatId>`. */
  readonly key?: (chatId: string) => string
  /**
   * Asks your server for an answer. Returns the name of the stream that it writes. Default: a `request` at `<key>.ask`,
   * with an {@link AnswerRequest}.
   */
  readonly ask?: (asked: AnswerRequest<M>, signal: AbortSignal | undefined) => Awaitable<{ readonly stream: string }>
  /** Default: the client of `setup`. */
  readonly client?: GivenClient
}

/** Time that a server has to begin an answer. */
const ASK_TIMEOUT_MS = 60_000

/** Appends that wait before the next chunk is read. */
const MAX_WAITING = 64

/**
 * A transport of the AI SDK: answers are streams, which survive reloads and lost connections, reach every device, and are
 * stopped from any. For `useChat({ id, resume: true, transport: streamTransport() })`.
 */
export function streamTransport<M extends UIMessage = UIMessage>(
  options: StreamTransportOptions<M> = {},
): ChatTransport<M> {
  checks.part?.('streamTransport', options)
  const { client, key: keyOf = (chatId) => `chat.${chatId}`, ask } = options
  /** By chat, the last time that the SDK has resumed it. */
  const resumed = new Map<string, object>()

  return {
    // A stream is read from its beginning.
    resumeStreamIsReplay: true,

    async sendMessages({ chatId, messages, trigger, messageId, body, metadata, abortSignal }) {
      const key = keyOf(chatId)
      const asked = { chatId, messages, trigger, messageId, body, metadata }
      const options = { client, timeoutMs: ASK_TIMEOUT_MS, ...(abortSignal && { signal: abortSignal }) }
      const { stream } = ask
        ? await ask(asked, abortSignal)
        : await request<string, object, { stream: string }>(`${key}.ask`, asked as never, options)
      const reader = readStream(key, { client, id: stream })
      onAbort(abortSignal, () => void stop(reader))
      return chunksOf(reader)
    },

    async reconnectToStream({ chatId, abortSignal }) {
      const reader = readStream(keyOf(chatId), { client })
      const own = {}
      resumed.set(chatId, own)
      await reader.ready
      if (reader.status !== 'active' || abortSignal?.aborted) {
        reader.close()
        return null
      }
      // The SDK aborts one attempt to resume for the next one, too: that stops nothing.
      const isStop = () => resumed.get(chatId) === own
      onAbort(abortSignal, () => setTimeout(() => (isStop() ? void stop(reader) : undefined)))
      return chunksOf(reader)
    },
  }
}

/**
 * Writes what `result.toUIMessageStream()` of the SDK gives, a JSON line for each chunk, and ends the stream. Give
 * `writer.signal` to the model, so that a stop reaches it. The writer is of `openStream`, or of `server.stream`.
 * @throws What the chunks have failed with, after the stream has failed too; {@link WebMQError} `E_STREAM_ENDED`.
 */
export async function writeChunks(
  writer: Pick<StreamWriter, 'append' | 'end' | 'fail'>,
  chunks: AsyncIterable<UIMessageChunk>,
): Promise<void> {
  const waiting: Promise<void>[] = []
  try {
    for await (const chunk of chunks) {
      const append = writer.append(`${JSON.stringify(chunk)}\n`)
      // It is awaited with the others.
      append.catch(() => undefined)
      waiting.push(append)
      if (waiting.length >= MAX_WAITING) await Promise.all(waiting.splice(0))
    }
    await Promise.all(waiting)
  } catch (error) {
    // Of an error of the writer itself nobody needs to be told twice.
    await writer.fail(error).catch(() => undefined)
    throw error
  }
  await writer.end()
}

function onAbort(signal: AbortSignal | undefined, act: () => void): void {
  if (signal?.aborted) act()
  else signal?.addEventListener('abort', act, { once: true })
}

/** The chunks go on until the writer ends the stream: it may have to say what it has stopped at. */
async function stop(reader: StreamReader): Promise<void> {
  try {
    await reader.stop()
  } catch (error) {
    // Its writer is gone, and with it what was to be stopped.
    if (!(error instanceof WebMQError && error.code === 'E_NO_RESPONDERS')) throw error
  }
}

function chunksOf(reader: StreamReader): ReadableStream<UIMessageChunk> {
  const chunks = read(reader)
  return new ReadableStream<UIMessageChunk>({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      reader.close()
    },
  })
}

async function* read(reader: StreamReader): AsyncGenerator<UIMessageChunk, undefined> {
  let rest = ''
  let seenLength = 0
  for await (const { text = '', isWhole } of reader) {
    if (reader.isCut) throw new WebMQError('E_RESPONSE', { detail: 'a part of the answer is gone' })
    // After a gap it comes as a whole again, and begins with what was seen.
    const fresh = isWhole ? text.slice(seenLength) : text
    seenLength += fresh.length
    const lines = (rest + fresh).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(line)
  }
  if (reader.error) throw reader.error
  return undefined
}
