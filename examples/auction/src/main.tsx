import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { setup } from 'webmq-client'
import { useStatus } from 'webmq-client/react'
import { openItem } from './gateway'
import { Item } from './item'
import { useItems } from './items'
import { newLot } from './lots'
import './topics'

// Any node will do; after a lost connection, the next one.
const NODES = ['/ws', '/second/ws']
let attempts = Math.floor(Math.random() * NODES.length)
setup({ url: () => NODES[attempts++ % NODES.length] as string })

const me = new URLSearchParams(location.search).get('name') ?? `bidder ${Math.floor(Math.random() * 1_000)}`

function Auction() {
  const items = useItems()
  const { lost } = useStatus()
  return (
    <>
      <p className="bar">
        <span>
          You are <b>{me}</b>.
        </span>
        <button type="button" onClick={() => openItem({ id: newLot(), endsInMs: 60_000, startPrice: 100 })}>
          Open an auction of one minute
        </button>
      </p>
      {lost && <p role="alert">No connection. You can bid, and see other bids later.</p>}
      {items.length === 0 && (
        <p className="card empty">No auction is open. Open one, and bid against yourself in another window.</p>
      )}
      <div className="items">
        {items.map((item) => (
          <Item key={item.id} item={item} me={me} />
        ))}
      </div>
    </>
  )
}

createRoot(document.querySelector('main') as HTMLElement).render(
  <StrictMode>
    <Auction />
  </StrictMode>,
)
