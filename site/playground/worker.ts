import type { TestServer } from 'webmq-client/testing'
import { type Order, PANES, type Told } from './messages.js'
import type * as Modules from './modules.js'
import { Pane } from './pane.js'

/** The modules of a page, as a script that makes `webmq`. */
declare const MODULES: string

/** How long a restarted server is away. */
const RESTART_MS = 1_000

const { createTestServer } = new Function(`${MODULES};return webmq`)() as typeof Modules
const server: TestServer = createTestServer({ retain: ['#'], verifyToken: (token) => ({ userId: token }) })
const tell = (told: Told) => postMessage(told)
const tellOfServer = (text: string) => tell({ pane: 'server', kind: 'server', text })
const panes = { listen: new Pane('listen', server, tell), publish: new Pane('publish', server, tell) }

const acts = {
  cut: () => {
    tellOfServer('the network of the left page is cut')
    panes.listen.setOffline(true)
  },
  join: () => {
    tellOfServer('the network of the left page is back')
    panes.listen.setOffline(false)
  },
  restart: () => {
    tellOfServer('the server stops; its broker keeps the log')
    server.isUp = false
    server.drop()
    setTimeout(() => {
      server.isUp = true
      tellOfServer('the server is back')
    }, RESTART_MS)
  },
  lose: () => {
    server.expireHistory()
    tellOfServer('the log has lost its messages: who is connected misses nothing, who comes back is told')
  },
}

addEventListener('unhandledrejection', (event) => {
  event.preventDefault()
  tell({ pane: 'server', kind: 'error', text: String(event.reason) })
})

addEventListener('message', ({ data }: MessageEvent<Order>) => {
  if ('act' in data) acts[data.act]()
  else for (const name of PANES) void panes[name].run(data.run[name], MODULES)
})
