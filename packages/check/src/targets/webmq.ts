import { WebMQClient } from 'webmq-client'
import { webmqServer } from '../playing/node.js'
import { numberIn, post, type System, webSocketThrough } from './system.js'

const HISTORY = '#=100000'

export const webmq: System = {
  title: 'WebMQ',
  settings: `--broker redis://…, --history '${HISTORY}'; webmq-client`,
  nodeProgram: ({ port, redisUrl, namespace }) =>
    webmqServer(port, [
      ...['--threads', '1', '--log-level', 'warn', '--drain-timeout', '1s'],
      ...(redisUrl === undefined ? [] : ['--broker', redisUrl, '--broker-namespace', namespace]),
      ...['--history', HISTORY],
    ]),
  publish: (origin, { channel, number }) =>
    post(`${origin}/api/publish`, { key: channel, payload: { number } }, () => true),
  listen: async (port, channels, heard, agent) => {
    const client = new WebMQClient({ url: `ws://127.0.0.1:${port}/ws`, WebSocket: webSocketThrough(agent) })
    const subscriptions = channels.map((channel) =>
      client.listen(channel, (payload) => heard({ what: 'message', channel, number: numberIn(payload) })),
    )
    await Promise.all(subscriptions.map(({ ready }) => ready))
    for (const subscription of subscriptions) {
      const channel = subscription.pattern
      subscription.on('gap', () => heard({ what: 'told', channel, isRecovered: false }))
      subscription.on('ready', ({ recovered }) => {
        if (recovered) heard({ what: 'told', channel, isRecovered: true })
      })
    }
    return { close: () => void client.close() }
  },
}
