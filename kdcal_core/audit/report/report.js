"use strict";
const narrow = matchMedia("screen and (max-width: 600px)");
function draw(place) {
  const figure = JSON.parse(document.getElementById(place.id + "-figure").textContent);
  const layout = narrow.matches ? { ...figure.layout, ...figure.narrow } : figure.layout;
  Plotly.react(place, figure.data, layout, {
    displayModeBar: false,
    displaylogo: false,
    showSendToCloud: false,
    showLink: false,
    doubleClick: false,
    responsive: true,
  });
}
function drawAll() {
  document.querySelectorAll(".plot").forEach(draw);
}
drawAll();
narrow.addEventListener("change", drawAll);
