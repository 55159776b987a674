import { publish, setup } from 'webmq-client'

// The test server takes the token as the user's id. A server verifies it.
setup({ url: 'ws://127.0.0.1:8080/ws', token: 'ada' })

let count = 0
setInterval(() => {
  const text = `message ${++count}`
  publish('chat.42.message', { text })
}, 500)
