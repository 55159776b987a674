import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  decodeServerMessage,
  encodeServerMessage,
  type ServerMessage,
  type TextServerMessage,
} from '../../protocol/index.js'
import { createTestServer } from './index.js'

/** A text or a binary frame. */
type WireVector = { readonly name: string } & ({ readonly text: string } | { readonly base64: string })

interface Vectors {
  readonly valid: readonly (WireVector & { readonly decoded: { readonly verb: string; readonly id?: string } })[]
  readonly invalid: readonly (WireVector & { readonly code: string; readonly requestId?: string })[]
}

const { valid, invalid } = JSON.parse(
  readFileSync(new URL('../../../vectors/client-messages.json', import.meta.url), 'utf8'),
) as Vectors

/** Sends one frame to a test server, and returns what the server answers, without the `welcome`. */
async function exchange(vector: WireVector) {
  const server = createTestServer({ retain: ['#'] })
  server.publish('a', 1)
  server.publish('chat.42.message', new Uint8Array([10, 0]))
  const frames: (string | Uint8Array)[] = []
  await new Promise<void>((resolve) => {
    const socket = new server.WebSocket(server.url, ['webmq.v1'])
    socket.onopen = () => {
      socket.send(('text' in vector ? vector.text : Uint8Array.from(Buffer.from(vector.base64, 'base64'))) as never)
      // Its answer comes after the others.
      socket.send('unlisten end none' as never)
    }
    socket.onmessage = ({ data }: { data: string | ArrayBuffer }) => {
      if (`${data}`.startsWith('error end ')) resolve()
      else frames.push(typeof data === 'string' ? data : new Uint8Array(data))
    }
    socket.onclose = () => resolve()
  })
  return { received: server.received.slice(0, -1), frames, answers: frames.slice(1).map(decodeServerMessage) }
}

describe('the test server, by the vectors of client messages', () => {
  it.each(valid)('takes: $name', async (vector) => {
    const { frames, answers, received } = await exchange(vector)
    const { decoded } = vector
    expect(received[0]).toMatchObject({ ...decoded, ...('payload' in decoded && { payload: expect.any(Uint8Array) }) })
    expect(answers.map((answer) => 'code' in answer && answer.code)).not.toContain('E_MESSAGE_INVALID')
    if (decoded.verb === 'ping') expect(answers).toEqual([expect.objectContaining({ verb: 'pong' })])
    else expect(answers[0]).toEqual(decoded.id === undefined ? undefined : expect.objectContaining({ id: decoded.id }))
    // Its answers are canonical, as the vectors of server messages are: encoded again, they have the same bytes.
    for (const frame of frames) {
      const message = decodeServerMessage(frame)
      if (isText(message)) expect(encodeServerMessage(message)).toBe(frame)
    }
  })

  it.each(invalid)('refuses: $name', async (vector) => {
    const { answers, received } = await exchange(vector)
    expect(answers).toEqual([expect.objectContaining({ verb: 'error', id: vector.requestId, code: vector.code })])
    expect(received).toEqual([])
  })
})

function isText(message: ServerMessage): message is TextServerMessage {
  return !('payload' in message) || typeof message.payload === 'string'
}
