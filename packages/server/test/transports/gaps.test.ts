import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createServer } from '../../src/index.js'
import { ProtocolClient } from '../protocol-client.js'

const PADDING = 'p'.repeat(1_000)
/** More than the sockets of both sides hold. */
const MIN_DROPPED = 5_000

/**
 * Symptom: a client that lagged was told of no gap, or of the pattern of another client. Cause: the notice was looked up by the
 * number of the group when the socket had room again; the group was gone by then, or its number given anew.
 */
describe.each(['native', 'ws', 'uws'] as const)('what a client missed over %s', (transport) => {
  it.each(['listens anew', 'listens with meta', 'listens no more, and another listens'])(
    'is told when it %s',
    async (how) => {
      const server = createServer({ transport, port: 0, logLevel: 'silent', meta: ['y.#'] })
      onTestFinished(() => server.stop({ drainMs: 0 }))
      const { url } = await server.start()
      const open = async () => {
        const client = await ProtocolClient.open(url)
        onTestFinished(() => client.socket.terminate())
        return client
      }
      const client = await open()
      const listen = (of: ProtocolClient, pattern: string, options = {}) =>
        of.request((id) => ({ verb: 'listen', id, pattern, ...options }))
      await listen(client, 'x.#', { overflow: 'drop-oldest' })
      client.socket.pause()
      let count = 0
      while (server.stats().transport.droppedCount < MIN_DROPPED && count < 200_000) {
        await Promise.all(
          Array.from({ length: 100 }, () => server.publish('x.a', { number: count++, padding: PADDING })),
        )
      }
      const receivedCount = server.stats().receivedCount + 1
      const until = (listenCount: number) =>
        vi.waitFor(() => expect(server.stats()).toMatchObject({ receivedCount, listenCount }))
      if (how === 'listens anew') {
        client.send({ verb: 'listen', id: 'anew', pattern: 'x.#' })
        await until(1)
      } else if (how === 'listens with meta') {
        client.send({ verb: 'listen', id: 'meta', pattern: 'y.#', meta: true })
        await until(2)
      } else {
        client.send({ verb: 'unlisten', id: 'no', pattern: 'x.#' })
        await until(0)
      }
      // Its group has the number of the first, if that is free.
      await listen(await open(), 'secret.#', { overflow: 'drop-oldest' })
      client.socket.resume()
      await client.settled()
      let next = 0
      let isTold = false
      for (const message of client.messages) {
        if (message.verb === 'gap') {
          expect(message).toMatchObject({ pattern: 'x.#', reason: 'slow-consumer' })
          isTold = true
        }
        if (message.verb !== 'message') continue
        const { number } = JSON.parse(String(message.payload)) as { number: number }
        expect({ number, isTold }).toEqual({ number, isTold: number !== next })
        next = number + 1
        isTold = false
      }
      expect(next).toBe(count)
    },
  )
})
