import { setup } from 'webmq-client'
import { respond } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

respond('sum.*', (numbers) => numbers.reduce((sum, number) => sum + number, 0))
