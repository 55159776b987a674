import { experimental_streamedQuery as streamedQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { useClient, useTopic } from '../../src/frameworks/react/index.js'
import { iterate, loaded } from '../../src/parts/index.js'

interface Order {
  readonly id: number
  readonly total: number
}

const ORDERS = { queryKey: ['orders'] }

/** Orders of your API, kept up to date by messages. */
export function useOrders(fetchOrders: (signal: AbortSignal) => Promise<readonly Order[]>) {
  const queryClient = useQueryClient()
  const apply = (order: Order) =>
    queryClient.setQueryData<readonly Order[]>(ORDERS.queryKey, (orders = []) => [
      ...orders.filter(({ id }) => id !== order.id),
      order,
    ])
  useTopic('orders.*', (payload) => apply(payload as Order), {
    receiver: (handler) => loaded(handler, () => queryClient.invalidateQueries(ORDERS, { throwOnError: true })),
  })
  return useQuery({ ...ORDERS, queryFn: ({ signal }) => fetchOrders(signal) })
}

const TRADES = { queryKey: ['trades'] }

/** The last 100 trades, without an API: the log of the broker is the source. */
export function useTrades() {
  const queryClient = useQueryClient()
  const client = useClient()
  useEffect(() => client.on('gap', () => queryClient.invalidateQueries(TRADES)), [client, queryClient])
  return useQuery({
    ...TRADES,
    queryFn: streamedQuery({
      streamFn: ({ signal }) => iterate('trades.*', { client, last: 100, signal }),
      initialValue: [] as readonly unknown[],
      reducer: (trades, { payload }) => [...trades, payload].slice(-100),
    }),
  })
}
