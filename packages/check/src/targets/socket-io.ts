import type { Agent } from 'node:http'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { io, type ManagerOptions } from 'socket.io-client'
import { numberIn, post, type System } from './system.js'

const PROGRAM = fileURLToPath(new URL('../../targets/socket-io-node.mjs', import.meta.url))
const versionOf = (name: string) => {
  const { version } = createRequire(import.meta.url)(`${name}/package.json`) as { readonly version: string }
  return `${name} ${version}`
}

export const socketIo: System = {
  title: `${versionOf('socket.io')}, ${versionOf('@socket.io/redis-streams-adapter')}`,
  settings:
    'connectionStateRecovery: { maxDisconnectionDuration: 120_000 }, Redis streams adapter with maxLen: 100_000',
  nodeProgram: ({ port, redisUrl, namespace }) => ({
    command: process.execPath,
    args: [PROGRAM, String(port), namespace, ...(redisUrl === undefined ? [] : [redisUrl])],
  }),
  publish: (origin, { channel, number }) => post(`${origin}/publish`, { channel, payload: { number } }, () => true),
  listen: async (port, channels, heard, agent) => {
    const socket = io(`http://127.0.0.1:${port}`, {
      transports: ['websocket'],
      forceNew: true,
      auth: { channels },
      ...(agent !== undefined && throughAgent(agent)),
    })
    socket.on('message', (channel: string, payload: unknown) => {
      heard({ what: 'message', channel, number: numberIn(payload) })
    })
    await new Promise<void>((resolve) => socket.once('connect', resolve))
    socket.on('connect', () => heard({ what: 'told', isRecovered: socket.recovered }))
    return { close: () => void socket.close() }
  },
}

/** Its types know the agents of browsers alone; in Node it hands this one to `ws`. */
function throughAgent(agent: Agent): Partial<ManagerOptions> {
  return { ...({ agent, perMessageDeflate: false } as object) }
}
