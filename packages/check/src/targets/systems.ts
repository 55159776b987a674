import type { System } from './system.js'

/** Loaded when they are asked for: each needs libraries of its own. */
export const SYSTEMS: Readonly<Record<string, () => Promise<System>>> = {
  webmq: async () => (await import('./webmq.js')).webmq,
  socketio: async () => (await import('./socket-io.js')).socketIo,
  centrifugo: async () => await (await import('./centrifugo.js')).obtainCentrifugo(),
  sockudo: async () => await (await import('./sockudo.js')).obtainSockudo(),
  anycable: () => {
    throw new Error('the package of npm downloads its program from elsewhere, and no module of Go is served for it')
  },
  'sockudo-python': async () => await (await import('./sockudo.js')).obtainSockudoPython(),
}
