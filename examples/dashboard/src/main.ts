import { publish, setup } from 'webmq-client'
import { state } from 'webmq-client/parts'
import { Board } from './board'
import { FrameTimes } from './frame-times'

declare module 'webmq-client' {
  interface Topics {
    'prices.*': number
    'feed.running': boolean
  }
}

setup({ url: '/ws' })

const board = new Board('#prices')
const frames = new FrameTimes()
const pause = document.querySelector('#pause') as HTMLButtonElement
const status = document.querySelector('#status') as HTMLOutputElement

const prices = state('prices.*', { every: 'frame' })
prices.subscribe(({ set, removed }) => {
  for (const [key, price] of set) board.show(key, price)
  for (const key of removed) board.hide(key)
  board.setStale(prices.isStale)
  status.value = `${prices.size} prices, ${frames.perSecond} frames per second`
})

const feed = state('feed.*')
const isRunning = () => feed.get('feed.running') ?? true
feed.subscribe(() => {
  pause.textContent = isRunning() ? 'Pause' : 'Run'
})
pause.addEventListener('click', () => publish('feed.running', !isRunning()))
