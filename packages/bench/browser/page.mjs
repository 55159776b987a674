// The page of scripts/measure-browser.mjs: one client after another does the same work with the same messages.
import { createCable } from '@anycable/web'
import { Centrifuge } from 'centrifuge'
import { io } from 'socket.io-client'
import { setup } from 'webmq-client'
import { latest, latestBatch } from 'webmq-client/latest'

const KEYS = 100

/** What the page shows: a cell per key. */
const cells = new Map()
for (let key = 0; key < KEYS; key++) {
  const cell = document.createElement('span')
  document.body.append(cell, ' ')
  cells.set(`p.${key}`, cell)
}

let handledCount = 0
let lastSeq = 0

/** The work of each message. */
function show(key, { seq, price }) {
  handledCount++
  if (seq > lastSeq) lastSeq = seq
  cells.get(key).textContent = price
}

const CLIENTS = {
  bare: (url) =>
    new Promise((resolve) => {
      const socket = new WebSocket(url)
      socket.onopen = resolve
      socket.onmessage = ({ data }) => {
        const { key, payload } = JSON.parse(data)
        show(key, payload)
      }
    }),
  webmq: (url) => setup({ url }).listen('p.*', (payload, { key }) => show(key, payload)).ready,
  'webmq latest': (url) =>
    setup({ url }).listen(
      'p.*',
      latest((payload, { key }) => show(key, payload)),
    ).ready,
  'webmq latestBatch': (url) => {
    const handler = (messages) => {
      for (const { key, payload } of messages) show(key, payload)
    }
    return setup({ url }).listen('p.*', latestBatch(handler)).ready
  },
  'socket.io': (url) =>
    new Promise((resolve) => {
      const socket = io(url, { transports: ['websocket'] })
      socket.on('connect', resolve)
      socket.on('message', show)
    }),
  centrifuge: (url) =>
    new Promise((resolve) => {
      const centrifuge = new Centrifuge(url)
      const subscription = centrifuge.newSubscription('p')
      subscription.on('publication', ({ data }) => show(data.key, data.payload))
      subscription.on('subscribed', resolve)
      subscription.subscribe()
      centrifuge.connect()
    }),
  anycable: (url) => {
    const channel = createCable(url).subscribeTo('PricesChannel')
    channel.on('message', ({ key, payload }) => show(key, payload))
    return channel.ensureSubscribed()
  },
}

const frames = []

globalThis.bench = {
  connect: (name, url) => CLIENTS[name](url),
  /** Notes the time of each animation frame from now on. */
  watch() {
    const note = (time) => {
      frames.push(time)
      requestAnimationFrame(note)
    }
    requestAnimationFrame(note)
  },
  result: () => ({ handledCount, lastSeq, frames }),
}
