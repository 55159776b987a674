import { publish, setup } from 'webmq-client'

setup({ url: 'ws://127.0.0.1:8080/ws' })

let count = 0
setInterval(() => {
  const text = `message ${++count}`
  publish('chat.42.message', { text })
}, 500)
