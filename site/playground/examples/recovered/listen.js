import { listen, setup } from 'webmq-client'

setup({ url: 'ws://127.0.0.1:8080/ws' })

// Run, cut the network, wait, and restore it:
// what was missed comes, once and in order.
listen('chat.*.message', ({ text }, { replayed }) => {
  console.log(text, replayed ? '(replayed)' : '')
})
