import type { WebMQClient } from '../client.js'
import { history } from '../history/index.js'
import { WebMQError } from '../protocol/index.js'
import { decodeChunk } from './frames.js'

/** Reads the last message of each of the keys `<key>.0`, `<key>.1`, …: their payloads. */
export async function readRetained(client: WebMQClient, key: string): Promise<readonly unknown[]> {
  const first = await last(client, `${key}.0`)
  const { count = 0 } = decodeChunk(first[0]) ?? {}
  const rest = await Promise.all(
    Array.from({ length: Math.max(0, count - 1) }, (_, index) => last(client, `${key}.${index + 1}`)),
  )
  return [...first, ...rest.flat()]
}

async function last(client: WebMQClient, key: string): Promise<readonly unknown[]> {
  try {
    const { messages } = await history(client, key, { limit: 1 })
    return messages.map(({ payload }) => payload)
  } catch (error) {
    if (error instanceof WebMQError && error.code === 'E_UNSUPPORTED') return []
    throw error
  }
}
