import { listen, setup } from 'webmq-client'

setup({ url: 'ws://127.0.0.1:8080/ws' })

// Run, cut the network, lose the log, and restore the network:
// the listener is told.
const subscription = listen('chat.*.message', ({ text }) => {
  console.log(text)
})
subscription.on('gap', ({ reason }) => {
  console.log(`load again: ${reason}`)
})
