export default async function responsive({ loadModel }) {
  const model = await loadModel('/build/packages/llama/');
  let longest = 0;
  let last = performance.now();
  let over = false;
  const tick = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!over) setTimeout(tick, 0);
  };
  const observed = [];
  const observer = new PerformanceObserver((list) => observed.push(...list.getEntries()));
  observer.observe({ type: 'longtask' });
  tick();
  const logitBias = { [model.info.stopTokens[0]]: -Infinity };
  const { tokens } = await model.generate('a story', { maxTokens: 300, logitBias });
  over = true;
  await new Promise((resolve) => setTimeout(resolve, 50));
  observer.disconnect();
  await model.close();
  // Tasks of the page itself: what other programs take from the machine is not its fault.
  return { longest: Math.max(0, ...observed.map(({ duration }) => duration)), gap: longest, tokens: tokens.length };
}
