import {
  AbstractChat,
  type ChatState,
  type ChatStatus,
  convertToModelMessages,
  simulateReadableStream,
  streamText,
  type UIMessage,
} from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer } from '../../dev/testing/index.js'
import type { WebMQClient } from '../../index.js'
import { respond } from '../requests/index.js'
import { openStream, readStream } from '../stream/index.js'
import { type AnswerRequest, streamTransport, writeChunks } from './index.js'

const clients: WebMQClient[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ flushMs: 0 })))
})

/** The state of a chat, without a framework. */
class State implements ChatState<UIMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined
  messages: UIMessage[] = []
  pushMessage = (message: UIMessage) => {
    this.messages = [...this.messages, message]
  }
  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: UIMessage) => {
    this.messages = this.messages.with(index, message)
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

class Chat extends AbstractChat<UIMessage> {}

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** A model that says these words, and then either ends or waits to be stopped. */
function modelOf(words: readonly string[], isEndless: boolean) {
  return new MockLanguageModelV3({
    doStream: async ({ abortSignal }) => {
      const chunks = [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: '1' },
        ...words.map((delta) => ({ type: 'text-delta', id: '1', delta })),
        { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: USAGE },
      ] as never[]
      if (!isEndless) return { stream: simulateReadableStream({ chunks }) }
      return {
        stream: new ReadableStream({
          start(controller) {
            for (const chunk of chunks.slice(0, -2)) controller.enqueue(chunk)
            abortSignal?.addEventListener('abort', () => controller.error(new DOMException('', 'AbortError')))
          },
        }),
      }
    },
  })
}

async function start({ words = ['Hello', ', ', '🌍'], isEndless = false } = {}) {
  const server = createTestServer()
  const newClient = () => {
    const { client } = createTestClient({ server })
    client.on('error', () => undefined)
    clients.push(client)
    return client
  }
  const assistant = newClient()
  let stopCount = 0
  const answering = respond(
    'chat.*.ask',
    async (asked) => {
      const { chatId, messages } = asked as AnswerRequest
      const writer = await openStream(`chat.${chatId}`, { client: assistant, meta: messages.at(-1) })
      writer.signal.addEventListener('abort', () => stopCount++)
      const result = streamText({
        model: modelOf(words, isEndless),
        messages: await convertToModelMessages([...messages]),
        abortSignal: writer.signal,
      })
      writeChunks(writer, result.toUIMessageStream()).catch(() => undefined)
      return { stream: writer.id }
    },
    { client: assistant },
  )
  await answering.ready
  const device = () => {
    const client = newClient()
    const state = new State()
    return { client, state, chat: new Chat({ id: '1', state, transport: streamTransport({ client }) }) }
  }
  return { server, device, stopCount: () => stopCount }
}

const textOf = ({ messages }: State) =>
  messages
    .filter(({ role }) => role === 'assistant')
    .flatMap(({ parts }) => parts.map((part) => (part.type === 'text' ? part.text : '')))
    .join('')

describe('the transport of the AI SDK', () => {
  it('brings the answer of a model', async () => {
    const { device } = await start()
    const { chat, state } = device()
    await chat.sendMessage({ text: 'Hi' })
    expect([state.error, state.status, textOf(state)]).toEqual([undefined, 'ready', 'Hello, 🌍'])
  })

  it('resumes an answer on another device, or after a reload, and stops it there: the writer learns of it once', async () => {
    const { device, stopCount, server } = await start({ isEndless: true })
    const first = device()
    const second = device()
    const sent = first.chat.sendMessage({ text: 'Hi' })
    await vi.waitFor(() => expect(textOf(first.state)).toBe('Hello, 🌍'))
    server.drop()
    const resumed = second.chat.resumeStream()
    await vi.waitFor(() => expect(textOf(second.state)).toBe('Hello, 🌍'))
    expect(stopCount()).toBe(0)
    await second.chat.stop()
    await Promise.all([sent, resumed])
    expect([stopCount(), first.state.status, textOf(first.state)]).toEqual([1, 'ready', 'Hello, 🌍'])
    // Nothing is being written now.
    const third = device()
    await third.chat.resumeStream()
    expect([third.state.status, third.state.messages]).toEqual(['ready', []])
  })

  // `useChat` resumes when it is mounted: a chat that was open already showed nothing. As the hook of docs/streams.md does it.
  it('shows an answer, with its question, to a device on which the chat is open', async () => {
    const { device } = await start({ isEndless: true })
    const open = device()
    const answer = readStream('chat.1', { client: open.client })
    let shown: string | undefined
    answer.onChange(() => {
      if (answer.status !== 'active' || answer.id === shown || open.chat.status !== 'ready') return
      shown = answer.id
      open.chat.messages = [...open.chat.messages, answer.meta as UIMessage]
      void open.chat.resumeStream()
    })
    await answer.ready
    const asking = device()
    const sent = asking.chat.sendMessage({ text: 'Hi' })
    await vi.waitFor(() => expect(textOf(open.state)).toBe('Hello, 🌍'))
    expect(open.state.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    await open.chat.stop()
    await sent
    expect(textOf(asking.state)).toBe('Hello, 🌍')
  })

  it('does not stop an answer when the SDK resumes it twice', async () => {
    const { device, stopCount } = await start({ isEndless: true })
    const first = device()
    const sent = first.chat.sendMessage({ text: 'Hi' })
    await vi.waitFor(() => expect(textOf(first.state)).toBe('Hello, 🌍'))
    const second = device()
    const resumes = [second.chat.resumeStream()]
    await vi.waitFor(() => expect(textOf(second.state)).toBe('Hello, 🌍'))
    resumes.push(second.chat.resumeStream())
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(stopCount()).toBe(0)
    await first.chat.stop()
    await Promise.all([sent, ...resumes])
    expect(stopCount()).toBe(1)
  })

  it('shows why there is no answer', async () => {
    const { device, server } = await start({ isEndless: true })
    const { chat, state } = device()
    server.refuse('request', 'E_FORBIDDEN')
    await chat.sendMessage({ text: 'Hi' })
    expect([state.status, state.error]).toMatchObject(['error', { code: 'E_FORBIDDEN' }])
    const sent = chat.sendMessage({ text: 'Hi' })
    await vi.waitFor(() => expect(textOf(state)).toBe('Hello, 🌍'))
    server.loseStream('chat.1')
    await sent
    expect([state.status, state.error]).toMatchObject(['error', { code: 'E_STREAM_ENDED' }])
  })
})
