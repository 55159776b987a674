import { publish, setup } from 'webmq-client'
import { respond } from 'webmq-client/parts'
import { openStream, type StreamWriter } from 'webmq-client/stream'
import WebSocket from 'ws'
import { words } from './src/model'
import type { Asked, Turn } from './src/topics'

setup({ url: process.env.WEBMQ_URL ?? 'ws://127.0.0.1:8080/ws', WebSocket })

/** Writes the answer as the model says it. A stop, from any screen, aborts `signal`, and with it the model. */
async function answer(writer: StreamWriter, question: string): Promise<void> {
  let text = ''
  for await (const word of words(question, writer.signal)) {
    text += word
    await writer.append(word)
  }
  const turn: Turn = { question, answer: text, isStopped: writer.signal.aborted, stream: writer.id }
  await publish('assistant.lobby.turn', turn, { id: writer.id })
  await writer.end()
}

respond('assistant.lobby.ask', async ({ question }): Promise<Asked> => {
  // If another answer is being written, this fails with `E_STREAM_BUSY`, which the page shows.
  const writer = await openStream('assistant.lobby.answer', { meta: { question } })
  answer(writer, question).catch((error: unknown) => {
    console.error(error)
    return writer.fail(error)
  })
  return { stream: writer.id }
})
