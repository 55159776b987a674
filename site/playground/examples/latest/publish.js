import { publish, setup } from 'webmq-client'

setup({ url: 'ws://127.0.0.1:8080/ws' })

let price = 0
setInterval(() => {
  price += 1
  publish('prices.eur', price)
  publish('prices.usd', -price)
}, 10)
