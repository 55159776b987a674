import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { post, type System, webSocketThrough } from 'webmq-check/systems'
import { nodeCommand } from '../../targets/node-command.js'

const PROGRAM = fileURLToPath(new URL('../../../targets/floor.mjs', import.meta.url))
/** A client that is written by hand waits for half to one and a half times as long before it connects again. */
const RETRY_MS = 1_000

/** Bare uWebSockets.js, and `ws` that connects again: who keeps nothing shows what a drop costs. */
export const floor: System = {
  title: 'uWebSockets.js alone, ws',
  settings: 'none',
  nodeProgram: ({ port, namespace, redisUrl }) => {
    const [command, ...loader] = nodeCommand()
    const { PATH = '', WEBMQ_BENCH_PEER_ROOT = '' } = process.env
    return {
      command,
      args: [...loader, PROGRAM, String(port), namespace, ...(redisUrl === undefined ? [] : [redisUrl])],
      env: { PATH, WEBMQ_BENCH_PEER_ROOT },
    }
  },
  publish: (origin, { channel, number }) => post(`${origin}/publish`, { channel, number }, () => true),
  listen: async (port, [channel = ''], heard, agent) => {
    const Socket = webSocketThrough(agent)
    let isClosed = false
    let close: () => void = () => undefined
    const connect = (opened: () => void) => {
      const socket = new Socket(`ws://127.0.0.1:${port}/?channel=${channel}`)
      close = () => socket.terminate()
      socket.on('open', opened)
      socket.on('message', (data) => {
        const { number } = JSON.parse(String(data)) as { readonly number: number }
        heard({ what: 'message', channel, number })
      })
      socket.on('error', () => undefined) // 'close' follows.
      socket.on('close', async () => {
        await sleep(RETRY_MS * (0.5 + Math.random()))
        if (!isClosed) connect(() => heard({ what: 'back' }))
      })
    }
    await new Promise<void>((resolve) => {
      connect(resolve)
    })
    return {
      close: () => {
        isClosed = true
        close()
      },
    }
  },
}
