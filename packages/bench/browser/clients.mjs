// The clients that chromium.mjs and node.mjs compare. Each calls `show(key, payload)`
// for each message, and its promise resolves when it listens. In Node, set `globalThis.WebSocket` before you connect.
import { createCable } from '@anycable/web'
import { Centrifuge } from 'centrifuge'
import { io } from 'socket.io-client'
import { setup } from 'webmq-client'
import { latest } from 'webmq-client/parts'

export const CLIENTS = {
  bare: (url, show) =>
    new Promise((resolve) => {
      const socket = new WebSocket(url)
      socket.onopen = resolve
      socket.onmessage = ({ data }) => {
        const { key, payload } = JSON.parse(data)
        show(key, payload)
      }
    }),
  webmq: (url, show) => setup({ url }).listen('p.*', (payload, { key }) => show(key, payload)).ready,
  'webmq latest': (url, show) =>
    setup({ url }).listen(
      'p.*',
      latest((payload, { key }) => show(key, payload)),
    ).ready,
  'webmq latest batch': (url, show) => {
    const handler = (messages) => {
      for (const { key, payload } of messages) show(key, payload)
    }
    return setup({ url }).listen('p.*', latest(handler, { batch: true })).ready
  },
  'socket.io': (url, show) =>
    new Promise((resolve) => {
      const socket = io(url, { transports: ['websocket'] })
      socket.on('connect', resolve)
      socket.on('message', show)
    }),
  centrifuge: (url, show) =>
    new Promise((resolve) => {
      const centrifuge = new Centrifuge(url)
      const subscription = centrifuge.newSubscription('p')
      subscription.on('publication', ({ data }) => show(data.key, data.payload))
      subscription.on('subscribed', resolve)
      subscription.subscribe()
      centrifuge.connect()
    }),
  anycable: (url, show) => {
    const channel = createCable(url).subscribeTo('PricesChannel')
    channel.on('message', ({ key, payload }) => show(key, payload))
    return channel.ensureSubscribed()
  },
}
