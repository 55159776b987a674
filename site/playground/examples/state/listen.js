import { setup } from 'webmq-client'
import { state } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

// Cut the network and restore it: only what has changed comes.
const seats = state('seats.*')
seats.subscribe(({ set, removed }) => {
  for (const [key, who] of set) console.log(key, who)
  for (const key of removed) console.log(key, 'is free')
})
