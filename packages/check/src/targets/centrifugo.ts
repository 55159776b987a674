import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Centrifuge } from 'centrifuge'
import { obtainGoProgram } from 'webmq-services'
import { numberIn, post, type System, webSocketThrough } from './system.js'

const VERSION = 'v6.9.1'
const PROGRAM = 'github.com/centrifugal/centrifugo/v6'
const HISTORY_SIZE = 100_000

/** Its server is built from its module with Go, once. */
export async function obtainCentrifugo(): Promise<System> {
  return centrifugo(await obtainGoProgram({ name: 'centrifugo', program: PROGRAM, version: VERSION }))
}

function configOf(port: number, redisUrl: string | undefined, prefix: string): object {
  return {
    http_server: { address: '127.0.0.1', port: String(port) },
    health: { enabled: true },
    log: { level: 'error' },
    http_api: { insecure: true },
    client: { insecure: true, recovery_max_publication_limit: HISTORY_SIZE },
    engine: redisUrl === undefined ? { type: 'memory' } : { type: 'redis', redis: { address: redisUrl, prefix } },
    channel: {
      without_namespace: {
        history_size: HISTORY_SIZE,
        history_ttl: '10m',
        force_recovery: true,
        force_positioning: true,
        allow_subscribe_for_client: true,
        allow_subscribe_for_anonymous: true,
      },
    },
  }
}

const centrifugo = (program: string): System => ({
  title: `Centrifugo ${VERSION}, centrifuge-js`,
  settings: `engine redis, history_size ${HISTORY_SIZE}, history_ttl 10m, force_recovery, force_positioning`,
  nodeProgram: ({ port, redisUrl, namespace, folder }) => {
    const file = path.join(folder, `centrifugo-${port}.json`)
    writeFileSync(file, JSON.stringify(configOf(port, redisUrl, namespace)))
    return { command: program, args: ['--config', file] }
  },
  publish: (origin, { channel, number }) =>
    post(`${origin}/api/publish`, { channel, data: { number } }, (answer) => 'result' in (answer as object)),
  listen: async (port, channels, heard, agent) => {
    const client = new Centrifuge(`ws://127.0.0.1:${port}/connection/websocket`, {
      websocket: webSocketThrough(agent),
    })
    const live = channels.map(async (channel) => {
      const subscription = client.newSubscription(channel)
      subscription.on('publication', ({ data }) => heard({ what: 'message', channel, number: numberIn(data) }))
      const subscribed = new Promise<void>((resolve) => subscription.once('subscribed', () => resolve()))
      subscription.subscribe()
      await subscribed
      subscription.on('subscribed', ({ recovered }) => heard({ what: 'told', channel, isRecovered: recovered }))
    })
    client.connect()
    await Promise.all(live)
    return { close: () => client.disconnect() }
  },
})
