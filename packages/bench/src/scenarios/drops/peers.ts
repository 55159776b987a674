import type { System } from 'webmq-check/systems'
import { RunError } from '../../exit-codes.js'
import { importBeside } from '../../missing-package.js'
import { listOf } from '../../options.js'

/** Servers, each with its own client; `uws` is bare uWebSockets.js. */
export const PEERS = ['webmq', 'socketio', 'centrifugo', 'uws'] as const
export type PeerName = (typeof PEERS)[number]

export const readPeers = listOf(PEERS)

/** Further flags of `webmq-server`. */
export type Flags = readonly string[]

/**
 * How nodes of a target are started, how its client listens, and how one publishes to it.
 * @param flags Of WebMQ's nodes, in place of those of its check.
 * @throws {RunError} when it, or a library for it, is not there.
 */
export async function systemOf(name: PeerName, flags?: Flags): Promise<System> {
  const { SYSTEMS, webmqServer } = await importBeside(() => import('webmq-check/systems'), 'drops')
  if (name === 'uws') return (await import('./floor.js')).floor
  const system = await SYSTEMS[name]?.().catch((cause: unknown) => {
    throw new RunError(`${name} cannot be had here: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  })
  if (system === undefined) throw new Error(`there is no system ${name}`)
  if (name !== 'webmq' || flags === undefined) return system
  return {
    ...system,
    nodeProgram: ({ port, redisUrl, namespace }) =>
      webmqServer(port, [
        ...(redisUrl === undefined ? [] : ['--broker', redisUrl, '--broker-namespace', namespace]),
        ...flags,
      ]),
  }
}
